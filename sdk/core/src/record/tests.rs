use std::num::NonZeroU32;

use super::*;
use crate::model::Order;

const NOW: i64 = 1_000;

fn table() -> TableSpec {
    let builder = TableSpec::builder("t").partition("id", Type::I64).clustering("c", Type::I64, Order::Ascending);
    builder.column("v", Type::Blob).column("w", Type::Blob).build().unwrap()
}

fn at(micros: i64) -> WriteTime {
    WriteTime::from_micros(micros).unwrap()
}

fn ttl(seconds: u32) -> Ttl {
    Ttl::Seconds(NonZeroU32::new(seconds).unwrap())
}

fn put(time: i64, value: &[u8], ttl: Ttl) -> Mutation {
    Mutation::put(Key::default(), at(time), vec![(2, Value::from(value))], ttl)
}

/// Applies in every order and checks that the order doesn't matter.
fn converge(mutations: &[Mutation]) -> Record {
    let merged = |order: &[Mutation]| {
        let mut record = Record::default();
        for mutation in order {
            record.apply(mutation, None, NOW).unwrap();
        }
        record
    };
    let forward = merged(mutations);
    let backward: Vec<_> = mutations.iter().rev().cloned().collect();
    assert_eq!(forward, merged(&backward), "{mutations:?}");
    forward
}

fn value(record: &Record, now: i64) -> Option<Vec<u8>> {
    match record.value(2, Type::Blob, now).unwrap() {
        Some(Value::Blob(bytes)) => Some(bytes.to_vec()),
        _ => None,
    }
}

#[test]
fn at_equal_times_the_larger_bytes_win() {
    for (low, high) in [(&b"\x05"[..], &b"\xff"[..]), (b"\x00\x80", b"\x7f"), (b"a", b"ab"), (b"", b"\x00")] {
        let record = converge(&[put(9, low, Ttl::Never), put(9, high, Ttl::Never)]);
        assert_eq!(value(&record, NOW).as_deref(), Some(high));
    }
}

#[test]
fn at_equal_times_a_delete_wins_and_one_microsecond_later_a_put_does() {
    let deletes = [Mutation::delete_row(Key::default(), at(9)), Mutation::delete_columns(Key::default(), at(9), [2])];
    for delete in deletes {
        assert_eq!(value(&converge(&[put(9, b"x", Ttl::Never), delete.clone()]), NOW), None);
        assert_eq!(value(&converge(&[put(10, b"x", Ttl::Never), delete]), NOW), Some(b"x".to_vec()));
    }
}

#[test]
fn at_equal_times_an_expiring_value_wins_and_hides_the_other_after_its_end() {
    let record = converge(&[put(9, b"lasting", Ttl::Never), put(9, b"a", ttl(5))]);
    assert_eq!(value(&record, NOW), Some(b"a".to_vec()));
    assert_eq!(value(&record, NOW + 5), None);
    let record = converge(&[put(9, b"z", ttl(5)), put(9, b"a", ttl(6))]);
    assert_eq!(value(&record, NOW), Some(b"a".to_vec()));
}

#[test]
fn a_replace_keeps_its_own_columns_alone() {
    let w = Mutation::put(Key::default(), at(8), vec![(3, Value::from(&b"w"[..]))], Ttl::Never);
    let record = converge(&[w, put(9, b"v", Ttl::Never).replacing()]);
    let row = record.read(&table(), &Key::default(), &Projection::default(), NOW).unwrap().unwrap();
    assert_eq!(row.values, [None, None, Some(Value::from(&b"v"[..])), None]);
}

#[test]
fn a_row_exists_while_it_has_a_live_column() {
    let mut record = converge(&[put(1, b"", ttl(2))]);
    assert!(record.exists(NOW + 1));
    assert!(!record.exists(NOW + 2));
    assert_eq!(record.read(&table(), &Key::default(), &Projection::default(), NOW + 2).unwrap(), None);
    record.apply(&Mutation::put(Key::default(), at(2), Vec::new(), Ttl::Never), None, NOW).unwrap();
    assert!(record.exists(NOW + 2), "a marker");
}

#[test]
fn the_default_ttl_holds_unless_the_write_says_otherwise() {
    let default = NonZeroU32::new(3);
    for (given, ends) in [(Ttl::TableDefault, Some(3)), (Ttl::Never, None), (ttl(9), Some(9))] {
        let mut record = Record::default();
        record.apply(&put(1, b"x", given), default, NOW).unwrap();
        let projection = Projection { ttl: true, write_time: true, ..Projection::default() };
        let row = record.read(&table(), &Key::default(), &projection, NOW).unwrap().unwrap();
        assert_eq!(row.meta[2].ttl, ends.and_then(NonZeroU32::new), "{given:?}");
        assert_eq!(row.meta[2].write_time, Some(at(1)));
    }
}

#[test]
fn a_record_round_trips_through_its_stored_form() {
    let marker = Mutation::put(Key::default(), at(12), Vec::new(), ttl(7));
    let record = converge(&[
        Mutation::delete_row(Key::default(), at(5)),
        put(9, b"value", ttl(5)),
        Mutation::delete_columns(Key::default(), at(10), [3]),
        marker,
    ]);
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let bytes = Bytes::from(bytes);
    assert_eq!(Record::decode(&bytes).unwrap(), record);
    for len in 0..bytes.len() {
        let cut = Record::decode(&bytes.slice(..len));
        assert!(cut.is_err() || cut.unwrap() != record, "cut at {len}");
    }
}

#[test]
fn purging_never_changes_what_is_visible() {
    let mut record = converge(&[put(9, b"old", ttl(5)), Mutation::delete_columns(Key::default(), at(9), [3])]);
    assert!(record.purge(at(8), NOW + 10), "too young to go");
    assert!(!record.purge(at(9), NOW + 10));
    let mut live = converge(&[put(9, b"x", Ttl::Never), Mutation::delete_row(Key::default(), at(3))]);
    assert!(live.purge(at(100), NOW));
    assert_eq!(value(&live, NOW), Some(b"x".to_vec()));
}
