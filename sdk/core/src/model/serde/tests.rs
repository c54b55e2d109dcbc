use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::*;
use crate::model::{Date, Decimal, Order, Time, Timestamp, Type, Varint};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Colour {
    Red,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    id: i64,
    flag: bool,
    tiny: i8,
    small: u8,
    int: u16,
    single: f32,
    double: f64,
    text: String,
    colour: Colour,
    blob: Vec<u8>,
    millis: i64,
    time: SystemTime,
    date: Date,
    clock: Time,
    uuid: Uuid,
    timeuuid: Uuid,
    inet: IpAddr,
    decimal: Decimal,
    varint: Varint,
    small_varint: i64,
    maybe: Option<String>,
    absent: Option<i32>,
}

fn everything() -> (TableSpec, Everything) {
    let spec = TableSpec::builder("everything")
        .partition("id", Type::I64)
        .column("flag", Type::Bool)
        .column("tiny", Type::I8)
        .column("small", Type::I16)
        .column("int", Type::I32)
        .column("single", Type::F32)
        .column("double", Type::F64)
        .column("text", Type::Text)
        .column("colour", Type::Text)
        .column("blob", Type::Blob)
        .column("millis", Type::Timestamp)
        .column("time", Type::Timestamp)
        .column("date", Type::Date)
        .column("clock", Type::Time)
        .column("uuid", Type::Uuid)
        .column("timeuuid", Type::TimeUuid)
        .column("inet", Type::Inet)
        .column("decimal", Type::Decimal)
        .column("varint", Type::Varint)
        .column("small_varint", Type::Varint)
        .column("maybe", Type::Text)
        .column("absent", Type::I32)
        .build()
        .unwrap();
    let row = Everything {
        id: -1,
        flag: true,
        tiny: -8,
        small: 255,
        int: 65_535,
        single: 1.5,
        double: -0.1,
        text: "é".into(),
        colour: Colour::Red,
        blob: vec![0, 255],
        millis: -5,
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567),
        date: Date(-1),
        clock: Time(1),
        uuid: Uuid::from_u128(7),
        timeuuid: Uuid::parse_str("6ba7b810-9dad-11d1-80b4-00c04fd430c8").unwrap(),
        inet: "fe80::1".parse().unwrap(),
        decimal: "-1.50".parse().unwrap(),
        varint: "123456789012345678901234567890".parse().unwrap(),
        small_varint: 42,
        maybe: Some(String::new()),
        absent: None,
    };
    (spec, row)
}

fn stored(spec: &TableSpec, (key, mut cells): RowParts) -> StoredRow {
    let mut values = vec![None; spec.columns().len()];
    for (index, value) in key.values().iter().cloned().enumerate().chain(cells.take()) {
        values[index] = Some(value);
    }
    StoredRow { values, meta: Vec::new() }
}

#[test]
fn every_type_goes_through_a_struct_and_back() {
    let (spec, row) = everything();
    let stored = stored(&spec, row.to_row(&spec).unwrap());
    assert_eq!(stored.values[21], None, "None writes nothing");
    assert_eq!(stored.values[20], Some(Value::from("")), "empty is not absent");
    assert_eq!(Everything::from_row(stored, &spec).unwrap(), row);
}

#[test]
fn a_dynamic_row_goes_in_and_out() {
    let (spec, row) = everything();
    let dynamic = Row::from_row(stored(&spec, row.to_row(&spec).unwrap()), &spec).unwrap();
    assert_eq!(dynamic.get("millis"), Some(&Value::Timestamp(Timestamp(-5))));
    assert_eq!(dynamic.get("absent"), None);
    assert_eq!(stored(&spec, dynamic.to_row(&spec).unwrap()), stored(&spec, row.to_row(&spec).unwrap()));
}

#[test]
fn a_map_is_a_row_and_text_reads_from_uuid_and_address() {
    let (spec, row) = everything();
    let stored = stored(&spec, row.to_row(&spec).unwrap());
    #[derive(Deserialize)]
    struct AsText {
        uuid: String,
        inet: String,
    }
    let text = AsText::from_row(stored, &spec).unwrap();
    assert_eq!((text.uuid.as_str(), text.inet.as_str()), ("00000000-0000-0000-0000-000000000007", "fe80::1"));

    let map = BTreeMap::from([("id", 1), ("int", 2)]);
    let (key, cells) = map.to_row(&spec).unwrap();
    assert_eq!((key.values(), cells), ([Value::I64(1)].as_slice(), RowValues::from_iter([(4, Value::I32(2))])));
}

#[test]
fn a_row_reads_into_a_tuple() {
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let row = StoredRow { values: vec![Some(Value::I64(1)), None], meta: Vec::new() };
    assert_eq!(<(i64, Option<String>)>::from_row(row, &spec).unwrap(), (1, None));
}

fn property() -> TableSpec {
    TableSpec::builder("property")
        .partition("group", Type::Text)
        .partition("name", Type::Text)
        .clustering("date", Type::Timestamp, Order::Descending)
        .column("value", Type::Text)
        .build()
        .unwrap()
}

#[test]
fn keys_come_as_tuples_structs_rows_and_keys() {
    #[derive(Serialize)]
    struct Whole {
        date: i64,
        name: &'static str,
        group: &'static str,
        value: &'static str,
    }
    let spec = property();
    let expected = Key::new(vec!["g".into(), "n".into(), Value::Timestamp(Timestamp(5))]);
    let columns = spec.primary_key();
    assert_eq!(("g", "n", 5).to_key(columns).unwrap(), expected);
    assert_eq!(Whole { date: 5, name: "n", group: "g", value: "v" }.to_key(columns).unwrap(), expected);
    let row = Row::new().with("name", "n").with("group", "g").with("date", Timestamp(5));
    assert_eq!(row.to_key(columns).unwrap(), expected);
    assert_eq!(expected.to_key(columns).unwrap(), expected);
}

#[test]
fn a_single_column_of_bytes_takes_bytes() {
    let blob = TableSpec::builder("t").partition("id", Type::Blob).build().unwrap();
    let expected = Key::new(vec![Value::from(vec![1_u8, 2])]);
    assert_eq!(vec![1_u8, 2].to_key(blob.primary_key()).unwrap(), expected);
    assert_eq!((vec![1_u8, 2],).to_key(blob.primary_key()).unwrap(), expected);
    let uuid = TableSpec::builder("t").partition("id", Type::Uuid).build().unwrap();
    let id = Uuid::from_u128(1);
    assert_eq!(id.to_key(uuid.primary_key()).unwrap(), Key::new(vec![Value::Uuid(id)]));
    let inet = TableSpec::builder("t").partition("id", Type::Inet).build().unwrap();
    let address: IpAddr = "10.0.0.1".parse().unwrap();
    assert_eq!(address.to_key(inet.primary_key()).unwrap(), Key::new(vec![Value::Inet(address)]));
}

#[test]
fn faults_name_the_column_and_the_remedy() {
    let spec = property();
    let message = |result: Result<Key>| result.unwrap_err().to_string();
    assert!(message(("g", "n").to_key(spec.primary_key())).contains("give (group, name, date)"));
    assert!(message(("g", "n", "d").to_key(spec.primary_key())).contains("column date: text doesn't fit"));
    assert!(message(("g", "n", 1, 2).to_key(spec.primary_key())).contains("more values"));
    assert!(message("g".to_key(spec.primary_key())).contains("one value for 3"));

    let row = |result: Result<RowParts>| result.unwrap_err().to_string();
    assert!(row(BTreeMap::from([("group", "g"), ("colour", "x")]).to_row(&spec)).contains("no column \"colour\""));
    assert!(row(BTreeMap::from([("group", "g"), ("name", "n")]).to_row(&spec)).contains("date is missing"));
    assert!(row(BTreeMap::from([("group", 1)]).to_row(&spec)).contains("column group: an integer"));
    assert!(row(5.to_row(&spec)).contains("not a row"));
    let ints = TableSpec::builder("t").partition("id", Type::I8).build().unwrap();
    assert!(message(300.to_key(ints.primary_key())).contains("300 is out of range for type i8"));
    let clock = TableSpec::builder("t").partition("at", Type::Time).build().unwrap();
    assert!(message((-1).to_key(clock.primary_key())).contains("not a time of the day"));
    let ids = TableSpec::builder("t").partition("id", Type::TimeUuid).build().unwrap();
    assert!(message(Uuid::from_u128(4 << 76).to_key(ids.primary_key())).contains("version 1"));
}

#[test]
fn a_row_that_does_not_fit_the_type_names_the_table() {
    #[derive(Debug, Deserialize)]
    struct Wrong {
        #[expect(dead_code, reason = "only deserialized")]
        id: bool,
    }
    let spec = TableSpec::builder("t").partition("id", Type::I64).build().unwrap();
    let row = StoredRow { values: vec![Some(Value::I64(1))], meta: Vec::new() };
    let error = Wrong::from_row(row, &spec).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("table t"), "{error}");
}
