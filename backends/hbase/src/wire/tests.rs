//! That what is written and read by hand is what the generated code writes and reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use thrift::protocol::{
    TBinaryOutputProtocol, TCompactOutputProtocol, TFieldIdentifier, TListIdentifier, TMessageIdentifier, TMessageType,
    TOutputProtocol, TSerializable, TStructIdentifier, TType,
};

use super::hbase1::{self, MutateRowTsArgs, Mutation, TCell, TRowResult};
use super::hbase2::{
    CheckAndMutateArgs, DELETE_COLUMNS, EQUAL, GetArgs, GetMultipleArgs, PutMultipleArgs, TColumn, TColumnValue,
    TDelete, TGet, TMutation, TPut, TResult, TRowMutations,
};
use super::*;
use crate::config::{Protocol, Transport};
use crate::connection::{Arguments, Decoded, Pending, Reader, Wire, read_with};

fn name(family: &'static str, qualifier: &'static str) -> CellName {
    CellName { family: family.into(), qualifier: qualifier.into() }
}

/// The bytes of a call in both protocols.
fn bytes(arguments: &impl Arguments) -> [Vec<u8>; 2] {
    [Protocol::Binary, Protocol::Compact].map(|protocol| {
        let (wire, mut bytes) = (Wire { transport: Transport::Buffered, protocol }, Vec::new());
        wire.encode(Pending { method: "put", sequence: -7 }, arguments, &mut bytes).unwrap();
        bytes
    })
}

fn put(value: &'static [u8]) -> CellValue<'static> {
    CellValue::Bytes(Cow::Borrowed(value))
}

fn steps(name: &CellName) -> Vec<RowStep<'_>> {
    vec![
        RowStep::DeleteRow { timestamp: 1 },
        RowStep::DeleteCells { cells: vec![name, name], timestamp: -2 },
        RowStep::Put { cells: Few::One((name, put(b"\0v"))), timestamp: 3, ttl: None },
        RowStep::Put { cells: Few::Many(vec![(name, put(b"")), (name, put(b"w"))]), timestamp: 4, ttl: Some(-9) },
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

/// The whole reply of a method that returns a list.
fn reply<T: TSerializable>(protocol: Protocol, items: &[T]) -> Bytes {
    let mut bytes = Vec::new();
    let write = |out: &mut dyn TOutputProtocol| {
        out.write_message_begin(&TMessageIdentifier::new("put", TMessageType::Reply, -7)).unwrap();
        out.write_struct_begin(&TStructIdentifier::new("result")).unwrap();
        out.write_field_begin(&TFieldIdentifier::new("success", TType::List, 0)).unwrap();
        out.write_list_begin(&TListIdentifier::new(TType::Struct, i32::try_from(items.len()).unwrap())).unwrap();
        for item in items {
            item.write_to_out_protocol(out).unwrap();
        }
        out.write_field_stop().unwrap();
        out.write_struct_end().unwrap();
    };
    match protocol {
        Protocol::Binary => write(&mut TBinaryOutputProtocol::new(&mut bytes, true)),
        Protocol::Compact => write(&mut TCompactOutputProtocol::new(&mut bytes)),
    }
    bytes.into()
}

type Rows = Vec<Option<RowCells>>;
/// A cell's family, qualifier, value and timestamp.
type ToldCell = (Vec<u8>, Vec<u8>, Vec<u8>, i64);
/// A row, and the cells that it has.
type ToldRow = Option<(Vec<u8>, Vec<ToldCell>)>;
type Told = Vec<ToldRow>;

fn told(rows: &Rows) -> Told {
    let cell = |cell: StoredCell<'_>| {
        (cell.name.family.to_vec(), cell.name.qualifier.to_vec(), cell.value.to_vec(), cell.timestamp)
    };
    rows.iter().map(|row| row.as_ref().map(|row| (row.row().to_vec(), row.cells().map(cell).collect()))).collect()
}

fn read(protocol: Protocol, bytes: &Bytes, reader: Reader<Rows>) -> Told {
    let wire = Wire { transport: Transport::Buffered, protocol };
    match wire.decode(bytes, Pending { method: "put", sequence: -7 }, reader) {
        Ok(Decoded::Reply(Ok(rows))) => told(&rows),
        other => panic!("{other:?}"),
    }
}

fn rows() -> impl Strategy<Value = Told> {
    vec(proptest::option::of((any::<Vec<u8>>(), vec(any::<ToldCell>(), 0..4))), 0..20)
}

proptest! {
    #[test]
    fn rows_of_thrift_2_are_read_as_the_generated_code_writes_them(rows in rows()) {
        let result = |row: &ToldRow| {
            let cell = |(family, qualifier, value, timestamp): &ToldCell| TColumnValue {
                family: family.clone(),
                qualifier: qualifier.clone(),
                value: value.clone(),
                timestamp: Some(*timestamp),
            };
            let column_values = row.iter().flat_map(|(_, cells)| cells.iter().map(cell)).collect();
            TResult { row: row.as_ref().map(|(row, _)| row.clone()), column_values }
        };
        let results: Vec<TResult> = rows.iter().map(result).collect();
        let expected: Told = rows.into_iter().map(|row| row.filter(|(_, cells)| !cells.is_empty())).collect();
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let found = read(protocol, &reply(protocol, &results), |input| {
                read_with(input, |input| input.list(rows2::read_row))
            });
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn rows_of_thrift_1_are_read_as_the_generated_code_writes_them(
        row: Vec<u8>,
        cells in btree_map(any::<Vec<u8>>(), any::<(Vec<u8>, i64)>(), 0..20),
    ) {
        let column = |qualifier: &[u8]| [b"f:", qualifier].concat();
        let columns = cells.iter().map(|(qualifier, (value, timestamp))| {
            (column(qualifier), TCell { value: value.clone(), timestamp: *timestamp })
        });
        let result = TRowResult { row: row.clone(), columns: Some(columns.collect()) };
        let cells: Vec<_> = cells.into_iter().map(|(name, (value, time))| (b"f".to_vec(), name, value, time)).collect();
        let expected: Told = vec![(!cells.is_empty()).then_some((row, cells))];
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let found = read(protocol, &reply(protocol, std::slice::from_ref(&result)), |input| {
                read_with(input, |input| input.list(rows1::read_row))
            });
            prop_assert_eq!(&found, &expected);
        }
    }
}
