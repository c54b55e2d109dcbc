//! Workloads as TOML files.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use peristyle::model::{TableSpec, Type};
use serde::Deserialize;
use toml::Spanned;

use super::Workload;
use super::operation::{Keys, Kind, Operation, QueryStart};
use super::rows::{Rows, Source, constant, is_numbered};
use crate::failure::{Failure, Result};

/// The longest random value.
const LONGEST: usize = 8 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    table: TableSpec,
    rows: RowsData,
    operations: Spanned<Vec<Spanned<OperationData>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsData {
    count: Spanned<u64>,
    columns: Spanned<BTreeMap<String, Spanned<ColumnData>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase", tag = "from")]
enum ColumnData {
    Constant {
        value: Constant,
    },
    Index {
        #[serde(default = "one")]
        divide: NonZeroU64,
        modulo: Option<NonZeroU64>,
        #[serde(default = "unit")]
        step: i64,
        #[serde(default)]
        start: i64,
        #[serde(default)]
        prefix: String,
    },
    Uniform {
        below: NonZeroU64,
        #[serde(default = "unit")]
        step: i64,
        #[serde(default)]
        start: i64,
        #[serde(default)]
        prefix: String,
    },
    Random {
        length: usize,
    },
}

/// A constant as TOML has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Constant {
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Constant {
    fn text(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(value) => value,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase", tag = "kind")]
enum OperationData {
    Put {
        #[serde(default = "weight")]
        weight: u32,
        keys: Option<KeysData>,
        thread_range: Option<NonZeroU64>,
    },
    Get {
        #[serde(default = "weight")]
        weight: u32,
        keys: Option<KeysData>,
        thread_range: Option<NonZeroU64>,
    },
    Query {
        #[serde(default = "weight")]
        weight: u32,
        keys: Option<KeysData>,
        #[serde(default)]
        start: QueryStart,
        span: Option<NonZeroU64>,
        #[serde(default = "page")]
        limit: usize,
        #[serde(default)]
        reverse: bool,
    },
}

/// How rows are chosen, as the file has it.
#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum KeysData {
    Sequential,
    Uniform,
    Zipfian,
    Latest,
    Hotspot,
}

fn one() -> NonZeroU64 {
    NonZeroU64::MIN
}

fn unit() -> i64 {
    1
}

fn weight() -> u32 {
    1
}

fn page() -> usize {
    5000
}

/// What is wrong, and at which byte.
type Fault = (usize, String);

/// Reads a workload. A fault is one line with file, line number and what is wrong.
pub(super) fn parse(origin: &str, text: &str, seed: u64) -> Result<Workload> {
    let fail = |(at, message): Fault| {
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        Failure::input(format!("{origin}:{line}: {message}"))
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        fail((at, error.message().replace('\n', ", ")))
    })?;
    file.check(seed).map_err(fail)
}

impl File {
    fn check(self, seed: u64) -> Result<Workload, Fault> {
        let table = Arc::new(self.table);
        let at = self.name.span().start;
        let name = self.name.into_inner();
        let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err((at, format!("name {name:?}: use letters, digits, '-' and '_'; it names a folder")));
        }
        if table.is_counter() {
            return Err((at, format!("table {} has counters, which workloads can't write", table.name())));
        }
        let count = *self.rows.count.get_ref();
        if count == 0 {
            return Err((self.rows.count.span().start, "count is 0; reads need at least one row".into()));
        }
        let sources = sources(&table, self.rows.columns)?;
        let at = self.operations.span().start;
        let operations = self.operations.into_inner();
        let operations =
            operations.into_iter().map(|data| operation(&table, data)).collect::<Result<Vec<_>, Fault>>()?;
        if operations.iter().all(|operation| operation.weight == 0) {
            return Err((at, "no operation has a weight above 0".into()));
        }
        let rows = Rows::new(&table, sources, count, seed);
        Ok(Workload { name, about: self.about, table, rows, operations })
    }
}

/// A source for every column, in the order of the table.
fn sources(table: &TableSpec, columns: Spanned<BTreeMap<String, Spanned<ColumnData>>>) -> Result<Vec<Source>, Fault> {
    let at = columns.span().start;
    let mut columns = columns.into_inner();
    let mut sources = Vec::new();
    for column in table.columns() {
        let Some(data) = columns.remove(&*column.name) else {
            return Err((at, format!("column {} of table {} has no entry in rows.columns", column.name, table.name())));
        };
        let at = data.span().start;
        sources
            .push(source(data.into_inner(), column.ty).map_err(|why| (at, format!("column {}: {why}", column.name)))?);
    }
    match columns.into_iter().next() {
        Some((name, data)) => Err((data.span().start, format!("table {} has no column {name:?}", table.name()))),
        None => Ok(sources),
    }
}

fn source(data: ColumnData, ty: Type) -> Result<Source, String> {
    let number = |source: Source| {
        if is_numbered(ty) { Ok(source) } else { Err(format!("a column of type {ty} can't be made from a number")) }
    };
    match data {
        ColumnData::Constant { value } => {
            let text = value.text();
            constant(&text, ty)?;
            Ok(Source::Constant(text))
        }
        ColumnData::Index { divide, modulo, step, start, prefix } => number(Source::Number {
            random: false,
            divide: divide.get(),
            modulo: modulo.map(NonZeroU64::get),
            step,
            start,
            prefix,
        }),
        ColumnData::Uniform { below, step, start, prefix } => {
            number(Source::Number { random: true, divide: 1, modulo: Some(below.get()), step, start, prefix })
        }
        ColumnData::Random { length } if length > LONGEST => Err(format!("length {length} is over {LONGEST}")),
        ColumnData::Random { length } if matches!(ty, Type::Blob | Type::Text) => Ok(Source::Random { length }),
        ColumnData::Random { .. } => Err(format!("random values are of type blob or text, but the column is {ty}")),
    }
}

fn operation(table: &TableSpec, data: Spanned<OperationData>) -> Result<Operation, Fault> {
    let at = data.span().start;
    let keys = |data: KeysData, range: Option<NonZeroU64>| match (data, range) {
        (KeysData::Sequential, Some(range)) => Ok(Keys::PerThread(range)),
        (_, Some(_)) => Err((at, "thread_range needs keys = \"sequential\"".to_owned())),
        (KeysData::Sequential, None) => Ok(Keys::Sequential),
        (KeysData::Uniform, None) => Ok(Keys::Uniform),
        (KeysData::Zipfian, None) => Ok(Keys::Zipfian),
        (KeysData::Latest, None) => Ok(Keys::Latest),
        (KeysData::Hotspot, None) => Ok(Keys::Hotspot),
    };
    Ok(match data.into_inner() {
        OperationData::Put { weight, keys: chosen, thread_range } => {
            let keys = keys(chosen.unwrap_or(KeysData::Sequential), thread_range)?;
            Operation { kind: Kind::Put, weight, keys }
        }
        OperationData::Get { weight, keys: chosen, thread_range } => {
            Operation { kind: Kind::Get, weight, keys: keys(chosen.unwrap_or(KeysData::Uniform), thread_range)? }
        }
        OperationData::Query { weight, keys: chosen, start, span, limit, reverse } => {
            check_query(table, start, span, limit).map_err(|why| (at, why))?;
            let keys = keys(chosen.unwrap_or(KeysData::Uniform), None)?;
            Operation { kind: Kind::Query { start, span, limit, reverse }, weight, keys }
        }
    })
}

fn check_query(table: &TableSpec, start: QueryStart, span: Option<NonZeroU64>, limit: usize) -> Result<(), String> {
    let clustering = table.clustering_key();
    if limit == 0 {
        return Err("limit is 0; a query asks for at least one row".into());
    }
    if start == QueryStart::Partition && span.is_some() {
        return Err("span needs start = \"row\"".into());
    }
    let Some(column) = clustering.first() else {
        return Err(format!("table {} has no clustering column to query by; use kind = \"get\"", table.name()));
    };
    if start == QueryStart::Row && clustering.len() > 1 {
        return Err("start = \"row\" needs a table with one clustering column".into());
    }
    let spans = matches!(column.ty, Type::I32 | Type::I64 | Type::Timestamp | Type::Date);
    if span.is_some() && !spans {
        return Err(format!(
            "span needs a clustering column of numbers or times, but {} is {}",
            column.name, column.ty
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::BUILTIN;

    const GOOD: &str = r#"name = "mine"

[table]
name = "t"
partition = [{ name = "id", type = "i64" }]
columns = [{ name = "title", type = "text" }]

[rows]
count = 10

[rows.columns]
id = { from = "index" }
title = { from = "random", length = 5 }

[[operations]]
kind = "put"
"#;

    fn fault(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        parse("mine.toml", &GOOD.replace(from, to), 1).unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_workload_reads() {
        for builtin in BUILTIN {
            let workload = parse(builtin.name, builtin.text, 1).unwrap();
            assert_eq!((workload.name.as_str(), workload.about.is_empty()), (builtin.name, false));
            let names: Vec<_> = workload.operations.iter().map(|operation| operation.kind.name()).collect();
            assert!(!names.is_empty());
            workload.rows.put(workload.rows.count() - 1, peristyle::model::WriteTime::MIN);
        }
    }

    #[test]
    fn a_fault_names_file_line_and_what_is_wrong() {
        assert!(parse("mine.toml", GOOD, 1).is_ok());
        let cases = [
            ("count = 10", "count = ", "mine.toml:9: "),
            ("count = 10", "cuont = 10", "mine.toml:9: unknown field `cuont`"),
            ("count = 10", "count = 0", "mine.toml:9: count is 0"),
            ("\"i64\"", "\"i65\"", "unknown column type \"i65\""),
            ("kind = \"put\"", "kind = \"putt\"", "unknown variant `putt`"),
            ("kind = \"put\"", "kind = \"query\"", "mine.toml:15: table t has no clustering column"),
            ("kind = \"put\"", "kind = \"put\"\nweight = 0", "no operation has a weight above 0"),
            ("kind = \"put\"", "kind = \"put\"\nkeys = \"uniform\"\nthread_range = 5", "thread_range needs"),
            ("id = { from = \"index\" }", "", "mine.toml:11: column id of table t has no entry"),
            ("title = {", "titel = {", "column title of table t has no entry"),
            ("id = {", "more = { from = \"index\" }\nid = {", "mine.toml:12: table t has no column \"more\""),
            ("{ from = \"index\" }", "{ from = \"random\", length = 5 }", "mine.toml:12: column id: random values are"),
            ("{ from = \"index\" }", "{ from = \"constant\", value = \"x\" }", "column id: \"x\" is not of type i64"),
            ("\"mine\"", "\"../mine\"", "mine.toml:1: name \"../mine\""),
        ];
        for (from, to, expected) in cases {
            let message = fault(from, to);
            assert!(message.contains(expected), "{to}: {message}");
            assert!(message.starts_with("mine.toml:") && !message.contains('\n'), "{message}");
        }
    }
}
