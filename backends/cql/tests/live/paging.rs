//! Pages of partitions and tables, compared with a sorted model.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use peristyle_core::codec::token::{serialise_partition, token};
use peristyle_core::model::{Key, Order, StoredRow, TableSpec, Type, Value};
use peristyle_core::request::{Projection, Query, Read, ScanOrder, ScanRange};
use peristyle_core::response::Page;
use peristyle_core::{Capability, ErrorKind, Result, Topology};
use peristyle_cql::CqlBackend;

use crate::support::{apply_all, config, connect, connect_with, create, key, put, query, read, scan_all, scan_page};

const ORDERS: [[Order; 3]; 4] = [
    [Order::Ascending, Order::Descending, Order::Ascending],
    [Order::Descending, Order::Ascending, Order::Descending],
    [Order::Ascending, Order::Ascending, Order::Ascending],
    [Order::Descending, Order::Descending, Order::Descending],
];

async fn filled(backend: &CqlBackend, name: &str, orders: [Order; 3]) -> Arc<TableSpec> {
    let [a, b, c] = orders;
    let spec = TableSpec::builder(name)
        .partition("p", Type::Text)
        .clustering("a", Type::I32, a)
        .clustering("b", Type::Text, b)
        .clustering("c", Type::F64, c)
        .column("v", Type::I64)
        .build()
        .unwrap();
    let table = create(backend, spec).await;
    let mutations = rows().iter().zip(0_i64..).map(|(row, number)| put(row, &[(4, Value::from(number))])).collect();
    assert!(apply_all(backend, &table, mutations).await.iter().all(Result::is_ok));
    table
}

fn rows() -> Vec<Key> {
    let mut rows = Vec::new();
    for a in [-1_i32, 0, 7] {
        for b in ["", "x"] {
            for c in [-0.0, 0.0, f64::NAN] {
                rows.push(key([Value::from("p"), Value::from(a), Value::from(b), Value::from(c)]));
            }
        }
    }
    rows
}

/// The rows in the order of the table.
fn model(table: &TableSpec) -> Vec<Key> {
    let mut rows = rows();
    rows.sort_by(|a, b| {
        let columns = table.clustering_key().iter().zip(a.values().iter().zip(b.values()).skip(1));
        let orders = columns.map(|(column, (a, b))| {
            let descending = column.kind == peristyle_core::model::ColumnKind::Clustering(Order::Descending);
            if descending { b.cluster_cmp(a) } else { a.cluster_cmp(b) }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    });
    rows
}

fn whole(limit: usize) -> Query {
    Query {
        partition: key([Value::from("p")]),
        prefix: vec![],
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
        reverse: false,
        after: None,
        limit,
        columns: Projection::default(),
    }
}

/// NaN is no equal of itself, so keys are compared by their text.
fn shown(rows: &[StoredRow], table: &TableSpec) -> Vec<String> {
    rows.iter().map(|row| row.key(table).unwrap().to_string()).collect()
}

fn texts(keys: &[Key]) -> Vec<String> {
    keys.iter().map(Key::to_string).collect()
}

#[tokio::test]
async fn a_query_goes_on_behind_every_row_in_every_mix_of_orders() {
    let backend = connect().await;
    for (number, orders) in ORDERS.into_iter().enumerate() {
        let table = filled(&backend, &format!("mixed{number}"), orders).await;
        for reverse in [false, true] {
            let mut model = model(&table);
            if reverse {
                model.reverse();
            }
            let page = query(&backend, &table, Query { reverse, ..whole(100) }).await.unwrap();
            assert_eq!(shown(&page.rows, &table), texts(&model));
            assert!(!page.more);
            for (seen, after) in model.iter().enumerate() {
                let after = Some(after.clone());
                let page = query(&backend, &table, Query { reverse, after, ..whole(5) }).await.unwrap();
                let rest = &model[seen + 1..];
                assert_eq!(shown(&page.rows, &table), texts(&rest[..rest.len().min(5)]), "{orders:?} {reverse} {seen}");
                assert_eq!(page.more, rest.len() >= 5);
            }
        }
    }
}

#[tokio::test]
async fn bounds_and_prefixes_hold_and_a_query_goes_on_within_them() {
    let backend = connect().await;
    let table = filled(&backend, "bounded", ORDERS[0]).await;
    let bounds = [
        (vec![], Bound::Excluded(Value::from(-1_i32)), Bound::Included(Value::from(7_i32))),
        (vec![], Bound::Included(Value::from(0_i32)), Bound::Excluded(Value::from(7_i32))),
        (vec![Value::from(0_i32)], Bound::Excluded(Value::from("")), Bound::Unbounded),
        (vec![Value::from(0_i32), Value::from("x")], Bound::Unbounded, Bound::Excluded(Value::from(0.0))),
        (vec![Value::from(0_i32), Value::from("x"), Value::from(f64::NAN)], Bound::Unbounded, Bound::Unbounded),
        (vec![], Bound::Excluded(Value::from(5_i32)), Bound::Excluded(Value::from(5_i32))),
        (vec![], Bound::Excluded(Value::from(5_i32)), Bound::Excluded(Value::from(3_i32))),
    ];
    for (prefix, lower, upper) in bounds {
        for reverse in [false, true] {
            let base =
                Query { prefix: prefix.clone(), lower: lower.clone(), upper: upper.clone(), reverse, ..whole(100) };
            let fits = |row: &Key| {
                let values = &row.values()[1..];
                let equal = prefix.iter().zip(values).all(|(a, b)| a.cluster_cmp(b) == Ordering::Equal);
                let Some(value) = values.get(prefix.len()) else { return equal };
                let above = match &lower {
                    Bound::Included(lower) => value.cluster_cmp(lower) != Ordering::Less,
                    Bound::Excluded(lower) => value.cluster_cmp(lower) == Ordering::Greater,
                    Bound::Unbounded => true,
                };
                let below = match &upper {
                    Bound::Included(upper) => value.cluster_cmp(upper) != Ordering::Greater,
                    Bound::Excluded(upper) => value.cluster_cmp(upper) == Ordering::Less,
                    Bound::Unbounded => true,
                };
                equal && above && below
            };
            let mut expected: Vec<_> = model(&table).into_iter().filter(fits).collect();
            if reverse {
                expected.reverse();
            }
            let page = query(&backend, &table, base.clone()).await.unwrap();
            assert_eq!(shown(&page.rows, &table), texts(&expected), "{base:?}");
            for (seen, after) in expected.iter().enumerate() {
                let after = Some(after.clone());
                let page = query(&backend, &table, Query { after, ..base.clone() }).await.unwrap();
                assert_eq!(shown(&page.rows, &table), texts(&expected[seen + 1..]), "{base:?} behind {seen}");
            }
        }
    }
}

#[tokio::test]
async fn a_page_larger_than_the_servers_is_put_together() {
    let mut config = config();
    config.page_size = 3;
    let backend = connect_with(config).await;
    let table = filled(&backend, "small_pages", ORDERS[0]).await;
    let page = query(&backend, &table, whole(100)).await.unwrap();
    assert_eq!(shown(&page.rows, &table), texts(&model(&table)));
    let page = query(&backend, &table, whole(7)).await.unwrap();
    assert_eq!((page.rows.len(), page.more), (7, true));
    assert_eq!(scan_all(&backend, &table, ScanRange::All, 100).await.len(), 18);
}

#[tokio::test]
async fn a_limit_of_zero_and_a_foreign_position_are_refused() {
    let backend = connect().await;
    let table = filled(&backend, "positions", ORDERS[0]).await;
    let foreign = key([Value::from("q"), Value::from(0_i32), Value::from(""), Value::from(0.0)]);
    for wrong in [
        whole(0),
        Query { after: Some(foreign), ..whole(5) },
        Query { after: Some(key([Value::from("p")])), ..whole(5) },
    ] {
        assert_eq!(query(&backend, &table, wrong).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

async fn scattered(backend: &CqlBackend, name: &str) -> Arc<TableSpec> {
    let spec = TableSpec::builder(name)
        .partition("p", Type::I64)
        .partition("q", Type::Text)
        .clustering("c", Type::I64, Order::Descending)
        .column("v", Type::I64)
        .build()
        .unwrap();
    let table = create(backend, spec).await;
    let mut mutations = Vec::new();
    for p in 0..40_i64 {
        for c in 0..=p % 4 {
            let row = key([Value::from(p), Value::from(format!("q{p}")), Value::from(c)]);
            mutations.push(put(&row, &[(3, Value::from(p * 10 + c))]));
        }
    }
    assert!(apply_all(backend, &table, mutations).await.iter().all(Result::is_ok));
    table
}

fn distinct(rows: &[StoredRow], table: &TableSpec) -> HashSet<String> {
    let seen: HashSet<_> = shown(rows, table).into_iter().collect();
    assert_eq!(seen.len(), rows.len(), "no row twice");
    seen
}

#[tokio::test]
async fn a_scan_gives_every_row_once_whatever_the_page() {
    let backend = connect().await;
    let table = scattered(&backend, "scanned").await;
    let whole = scan_all(&backend, &table, ScanRange::All, 1_000).await;
    assert_eq!(distinct(&whole, &table).len(), 100);
    for limit in [1, 2, 3, 7, 100] {
        let rows = scan_all(&backend, &table, ScanRange::All, limit).await;
        assert_eq!(shown(&rows, &table), shown(&whole, &table), "pages of {limit}");
    }
}

#[tokio::test]
async fn ranges_of_a_split_hold_every_row_once() {
    let backend = connect().await;
    let table = scattered(&backend, "split").await;
    for parts in [1, 3, 16, 50] {
        let ranges = backend.split(&table, parts);
        let mut rows = Vec::new();
        for range in &ranges {
            let ScanRange::Tokens { after, to } = *range else { panic!("{range:?}") };
            for row in scan_all(&backend, &table, range.clone(), 4).await {
                let own = token(&serialise_partition(row.key(&table).unwrap().prefix(2)).unwrap());
                assert!(after < own && own <= to);
                rows.push(row);
            }
        }
        assert_eq!(distinct(&rows, &table).len(), 100, "{parts} parts");
    }
}

#[tokio::test]
async fn a_scan_goes_on_behind_a_partition_that_is_gone() {
    let backend = connect().await;
    let table = scattered(&backend, "gone").await;
    let first = scan_page(&backend, &table, ScanRange::All, None, 10).await.unwrap();
    let last = first.rows.last().unwrap().key(&table).unwrap();
    let partition = Key::new(last.prefix(2).to_vec());
    let delete = peristyle_core::request::Mutation::delete_partition(partition, crate::support::now());
    crate::support::apply(&backend, &table, delete).await.unwrap();
    let mut seen: HashSet<_> = distinct(&first.rows, &table);
    let mut after = Some(last.clone());
    while let Some(key) = after {
        let Page { rows, more } = scan_page(&backend, &table, ScanRange::All, Some(key), 10).await.unwrap();
        after = if more { rows.last().map(|row| row.key(&table).unwrap()) } else { None };
        let before = seen.len();
        seen.extend(shown(&rows, &table));
        assert_eq!(seen.len(), before + rows.len());
    }
    assert!(seen.len() >= 97, "{}", seen.len());
}

#[tokio::test]
async fn partitions_that_share_a_token_are_all_scanned() {
    let backend = connect().await;
    let spec = TableSpec::builder("collisions").partition("p", Type::Blob).clustering("c", Type::I64, Order::Ascending);
    let table = create(&backend, spec.column("v", Type::I64).build().unwrap()).await;
    let [one, two] = colliding();
    assert_eq!(token(&one), token(&two));
    let mut mutations = Vec::new();
    for p in [one.to_vec(), two.to_vec(), vec![1], vec![2], vec![3]] {
        mutations
            .extend((0..3_i64).map(|c| put(&key([Value::from(p.clone()), Value::from(c)]), &[(2, Value::from(c))])));
    }
    assert!(apply_all(&backend, &table, mutations).await.iter().all(Result::is_ok));
    for limit in [1, 2, 3, 4, 100] {
        let rows = scan_all(&backend, &table, ScanRange::All, limit).await;
        assert_eq!(distinct(&rows, &table).len(), 15, "pages of {limit}");
    }
}

/// Two keys of one token: the two blocks of the hash mix, and both steps can be run backwards, so the second key's blocks are
/// chosen to undo the difference that its first made.
fn colliding() -> [[u8; 32]; 2] {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let inverse = |number: u64| {
        // Newton's iteration modulo 2^64.
        (0..6).fold(number, |x, _| x.wrapping_mul(2_u64.wrapping_sub(number.wrapping_mul(x))))
    };
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let unmix1 = |m: u64| m.wrapping_mul(inverse(C2)).rotate_right(31).wrapping_mul(inverse(C1));
    let unmix2 = |m: u64| m.wrapping_mul(inverse(C1)).rotate_right(33).wrapping_mul(inverse(C2));
    let step = |(h1, h2): (u64, u64), k1: u64, k2: u64| {
        let h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        let h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
        (h1, h2)
    };
    let key = |blocks: [u64; 4]| {
        let mut bytes = [0; 32];
        bytes.chunks_exact_mut(8).zip(blocks).for_each(|(place, block)| place.copy_from_slice(&block.to_le_bytes()));
        bytes
    };
    let first = [1, 2, 3, 4];
    let state = step((0, 0), first[0], first[1]);
    let goal = step(state, first[2], first[3]);
    let other = step((0, 0), 5, 6);
    // Solve step(other, k1, k2) = goal.
    let five = inverse(5);
    let a = goal.0.wrapping_sub(0x52dc_e729).wrapping_mul(five).wrapping_sub(other.1).rotate_right(27);
    let b = goal.1.wrapping_sub(0x3849_5ab5).wrapping_mul(five).wrapping_sub(goal.0).rotate_right(31);
    let second = [5, 6, unmix1(a ^ other.0), unmix2(b ^ other.1)];
    [key(first), key(second)]
}

#[tokio::test]
async fn rows_by_key_come_in_the_order_of_the_keys() {
    let backend = connect().await;
    let spec = TableSpec::builder("ids").partition("id", Type::Decimal).column("v", Type::Text).build().unwrap();
    let ids = create(&backend, spec).await;
    let decimal = |text: &str| key([Value::from(text.parse::<peristyle_core::model::Decimal>().unwrap())]);
    let stored: Vec<_> = (0..150).map(|number| decimal(&format!("{number}.0"))).collect();
    let mutations = stored.iter().map(|row| put(row, &[(1, Value::from(row.to_string()))])).collect();
    assert!(apply_all(&backend, &ids, mutations).await.iter().all(Result::is_ok));
    let mut keys = stored.clone();
    keys.extend(stored.iter().rev().cloned());
    keys.insert(7, decimal("-1"));
    // The same number in another form is another partition.
    keys.insert(9, decimal("1.00"));
    let all = Read::GetAll { keys: keys.clone(), columns: Projection::default() };
    let rows = read(&backend, &ids, all).await.unwrap().into_rows().unwrap();
    assert_eq!(rows.len(), keys.len());
    for (place, (key, row)) in keys.iter().zip(rows).enumerate() {
        if [7, 9].contains(&place) {
            assert_eq!(row, None);
        } else {
            assert_eq!(row.unwrap().values[1], Some(Value::from(key.to_string())));
        }
    }
    let none = Read::GetAll { keys: vec![], columns: Projection::default() };
    assert!(read(&backend, &ids, none).await.unwrap().into_rows().unwrap().is_empty());
}

#[tokio::test]
async fn scans_in_key_order_and_over_key_ranges_are_refused() {
    let backend = connect().await;
    let table = scattered(&backend, "unordered").await;
    let scan = |range, order| {
        Read::Scan(Box::new(peristyle_core::request::Scan {
            range,
            order,
            after: None,
            limit: 1,
            columns: Projection::default(),
        }))
    };
    for refused in
        [scan(ScanRange::All, ScanOrder::Key), scan(ScanRange::Keys { from: vec![].into(), to: None }, ScanOrder::Any)]
    {
        let error = read(&backend, &table, refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported(Capability::OrderedScan));
    }
}

#[tokio::test]
async fn the_owner_of_a_partition_is_the_node() {
    let backend = connect().await;
    let table = scattered(&backend, "owned").await;
    let owner = backend.owner(&table, &[Value::from(1_i64), Value::from("q1")]).unwrap();
    assert_eq!((&*owner.node, owner.shard, owner.local), (crate::support::address(), None, false));
}
