//! That what is written and read by hand is what the generated code writes and reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use thrift::protocol::TCompactOutputProtocol;

use super::hbase1::{self, MutateRowTsArgs, Mutation};
use super::hbase2::{
    CheckAndMutateArgs, DELETE_COLUMNS, EQUAL, GetArgs, GetMultipleArgs, PutMultipleArgs, TColumn, TColumnValue,
    TDelete, TGet, TMutation, TPut, TRowMutations,
};
use super::*;
use crate::connection::Arguments;

fn name(family: &'static str, qualifier: &'static str) -> CellName {
    CellName { family: family.into(), qualifier: qualifier.into() }
}

/// The bytes of a struct in the compact protocol, which has more to get wrong.
fn bytes(arguments: &impl Arguments) -> Vec<u8> {
    let mut bytes = Vec::new();
    arguments.write(&mut TCompactOutputProtocol::new(&mut bytes)).unwrap();
    bytes
}

fn steps(name: &CellName) -> Vec<RowStep<'_>> {
    vec![
        RowStep::DeleteRow { timestamp: 1 },
        RowStep::DeleteCells { cells: vec![name, name], timestamp: -2 },
        RowStep::Put { cells: vec![(name, Cow::Borrowed(b"\0v"))], timestamp: 3, ttl: None },
        RowStep::Put {
            cells: vec![(name, Cow::Borrowed(b"")), (name, Cow::Borrowed(b"w"))],
            timestamp: 4,
            ttl: Some(-9),
        },
    ]
}

fn cell(value: &str) -> TColumnValue {
    TColumnValue { family: b"f".into(), qualifier: b"q".into(), value: value.into(), timestamp: None }
}

fn generated(row: &[u8]) -> Vec<TMutation> {
    let delete = |columns, timestamp| {
        let delete_type = DELETE_COLUMNS;
        TMutation::DeleteSingle(TDelete { row: row.into(), columns, timestamp: Some(timestamp), delete_type })
    };
    let column = TColumn { family: b"f".into(), qualifier: Some(b"q".into()), timestamp: Some(-2) };
    let put = |column_values, timestamp, attributes| {
        TMutation::Put(TPut { row: row.into(), column_values, timestamp: Some(timestamp), attributes })
    };
    let ttl = BTreeMap::from([(b"_ttl".to_vec(), (-9_i64).to_be_bytes().to_vec())]);
    vec![
        delete(None, 1),
        delete(Some(vec![column.clone(), column]), -2),
        put(vec![cell("\0v")], 3, None),
        put(vec![cell(""), cell("w")], 4, Some(ttl)),
    ]
}

#[test]
fn writes_of_thrift_2_are_those_of_the_generated_code() {
    let (checked, guard) = (name("f", "q"), name("g", ""));
    let write = RowWrite { row: b"r", steps: steps(&checked) };
    let ours = rows2::CheckAndMutate { table: b"t", checked: &guard, value: b"", write: &write };
    let theirs = CheckAndMutateArgs {
        table: b"t".into(),
        row: b"r".into(),
        family: b"g".into(),
        qualifier: b"".into(),
        compare_op: EQUAL,
        value: Some(b"".into()),
        row_mutations: TRowMutations { row: b"r".into(), mutations: generated(b"r") },
    };
    assert_eq!(bytes(&ours), bytes(&theirs));
    let puts: Vec<StepOfRow<'_>> =
        steps(&checked).into_iter().filter(RowStep::is_put).map(|step| StepOfRow { row: b"r", step }).collect();
    let tputs = generated(b"r").into_iter().filter_map(|mutation| match mutation {
        TMutation::Put(put) => Some(put),
        TMutation::DeleteSingle(_) => None,
    });
    let theirs = PutMultipleArgs { table: b"t".into(), tputs: tputs.collect() };
    assert_eq!(bytes(&rows2::Multiple { table: b"t", steps: &puts }), bytes(&theirs));
}

#[test]
fn reads_of_thrift_2_are_those_of_the_generated_code() {
    let get = |row: &str| TGet { row: row.into(), columns: None };
    let ours = rows2::Get { table: b"t", row: b"a" };
    assert_eq!(bytes(&ours), bytes(&GetArgs { table: b"t".into(), tget: get("a") }));
    let ours = rows2::GetMultiple { table: b"t", rows: &[b"a", b"b"] };
    assert_eq!(bytes(&ours), bytes(&GetMultipleArgs { table: b"t".into(), tgets: vec![get("a"), get("b")] }));
}

#[test]
fn calls_of_thrift_1_are_those_of_the_generated_code() {
    let checked = name("f", "q");
    let mutation = |value: Option<&str>| Mutation {
        is_delete: value.is_none(),
        column: b"f:q".into(),
        value: value.map(Into::into),
        write_to_w_a_l: true,
    };
    let arguments = |mutations, timestamp, ttl: Option<i64>| MutateRowTsArgs {
        table_name: b"t".into(),
        row: b"r".into(),
        mutations,
        timestamp,
        attributes: ttl.map(|ttl| (b"_ttl".to_vec(), ttl.to_be_bytes().to_vec())).into_iter().collect(),
    };
    let theirs = [
        bytes(&hbase1::DeleteAllRowTsArgs {
            table_name: b"t".into(),
            row: b"r".into(),
            timestamp: 1,
            attributes: BTreeMap::new(),
        }),
        bytes(&arguments(vec![mutation(None), mutation(None)], -2, None)),
        bytes(&arguments(vec![mutation(Some("\0v"))], 3, None)),
        bytes(&arguments(vec![mutation(Some("")), mutation(Some("w"))], 4, Some(-9))),
    ];
    for (step, theirs) in steps(&checked).iter().zip(theirs) {
        assert_eq!(bytes(&rows1::Mutate { table: b"t", row: b"r", step }), theirs, "{step:?}");
    }
    let [put, other] = [b"a", b"b"].map(|row| StepOfRow { row, step: steps(&checked).swap_remove(3) });
    let batch = |row: &[u8]| hbase1::BatchMutation {
        row: row.into(),
        mutations: vec![mutation(Some("")), mutation(Some("w"))],
    };
    let theirs = hbase1::MutateRowsTsArgs {
        table_name: b"t".into(),
        row_batches: vec![batch(b"a"), batch(b"b")],
        timestamp: 4,
        attributes: arguments(Vec::new(), 4, Some(-9)).attributes,
    };
    assert_eq!(bytes(&rows1::MutateRows { table: b"t", steps: &[&put, &other] }), bytes(&theirs));
    let (rows, attributes) = (vec![b"a".to_vec(), b"b".to_vec()], BTreeMap::new());
    let ours = rows1::GetRows { table: b"t", rows: &[b"a", b"b"] };
    let theirs = hbase1::GetRowsArgs { table_name: b"t".into(), rows, attributes: attributes.clone() };
    assert_eq!(bytes(&ours), bytes(&theirs));
    let theirs = hbase1::GetRowArgs { table_name: b"t".into(), row: b"a".into(), attributes };
    assert_eq!(bytes(&rows1::GetRow { table: b"t", row: b"a" }), bytes(&theirs));
}
