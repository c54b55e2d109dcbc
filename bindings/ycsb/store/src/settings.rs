//! How the table is made, from properties.

use peristyle::model::{Salt, TableSpec, Type};
use peristyle::{Error, Result, Tuned};

/// The name of the key column, as in YCSB's own binding for Cassandra, so that tables made for it work unchanged.
pub const KEY_COLUMN: &str = "y_id";

/// The properties of this binding, beside YCSB's own.
pub const SETTINGS: [&str; 10] = [
    "peristyle.uri",
    "peristyle.table",
    "peristyle.create",
    "peristyle.buckets",
    "peristyle.fieldtype",
    "peristyle.batchsize",
    "peristyle.async",
    "peristyle.async.inflight",
    "peristyle.iothreads",
    "peristyle.config",
];

/// How many writes of a client are on their way at a time where nobody waits for them.
const IN_FLIGHT: usize = 64;

/// The type of the fields' columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldType {
    /// Any Unicode; the default.
    #[default]
    Text,
    /// Any bytes.
    Blob,
}

/// What the table looks like, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Its name: `peristyle.table`, else YCSB's `table`, else `usertable`.
    pub table: String,
    /// The names of the fields: `fieldnameprefix` and a number, `fieldcount` of them; default `field0` to `field9`.
    pub fields: Vec<String>,
    /// `peristyle.fieldtype`: `text` or `blob`; default text.
    pub field_type: FieldType,
    /// `peristyle.buckets`: how many salt buckets the table has, which give scans in key order where the backend has none;
    /// default none.
    pub buckets: Option<u16>,
    /// `peristyle.create`: makes the keyspace and the table where they are absent; default false.
    pub create: bool,
    /// `peristyle.batchsize`: how many inserts go into one request; default 1.
    pub batch: usize,
    /// `peristyle.async`: whether clients go on before their writes have ended; and `peristyle.async.inflight`: how many writes of
    /// each may be on their way then, 64 by default. 0 where clients wait, which is the default.
    pub in_flight: usize,
    /// `peristyle.iothreads`: the threads that do the client's work, else as many as the `tuned.toml` of `peristyle.config` says;
    /// default none, for the caller to choose.
    pub io_threads: Option<usize>,
}

impl Settings {
    /// Reads the properties that `get` knows.
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle::ErrorKind::InvalidArgument) that names the property and what it takes; those of
    /// [`Tuned::load`].
    pub fn new<'p>(get: impl Fn(&str) -> Option<&'p str>) -> Result<Self> {
        let number = |name: &str, least: usize, most: usize, default: usize| match get(name).map(str::trim) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(Error::invalid(format!("{name}={text}: give a number from {least} to {most}"))),
            },
        };
        let prefix = get("fieldnameprefix").unwrap_or("field");
        let fields = number("fieldcount", 1, 10_000, 10)?;
        let buckets = number("peristyle.buckets", 0, 256, 0)?;
        let field_type = match get("peristyle.fieldtype").map(str::trim) {
            None | Some("text") => FieldType::Text,
            Some("blob") => FieldType::Blob,
            Some(other) => return Err(Error::invalid(format!("peristyle.fieldtype={other}: give text or blob"))),
        };
        let in_flight = number("peristyle.async.inflight", 1, 100_000, IN_FLIGHT)?;
        let flag = |name: &str| get(name).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
        let tuned = get("peristyle.config").map(|file| Tuned::load(file.trim())).transpose()?;
        let io_threads = tuned.and_then(|tuned| usize::try_from(tuned.io_threads).ok()).unwrap_or_default();
        let io_threads = number("peristyle.iothreads", 1, 1_024, io_threads)?;
        Ok(Self {
            table: get("peristyle.table").or_else(|| get("table")).unwrap_or("usertable").trim().to_owned(),
            fields: (0..fields).map(|field| format!("{prefix}{field}")).collect(),
            field_type,
            buckets: u16::try_from(buckets).ok().filter(|buckets| *buckets > 0),
            create: flag("peristyle.create"),
            batch: number("peristyle.batchsize", 1, 100_000, 1)?,
            in_flight: if flag("peristyle.async") { in_flight } else { 0 },
            io_threads: (io_threads > 0).then_some(io_threads),
        })
    }

    /// The table as it is made.
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle::ErrorKind::InvalidArgument) for names that no table or column can have.
    pub fn spec(&self) -> Result<TableSpec> {
        let ty = match self.field_type {
            FieldType::Text => Type::Text,
            FieldType::Blob => Type::Blob,
        };
        let builder = TableSpec::builder(self.table.as_str()).partition(KEY_COLUMN, Type::Text);
        let builder = self.fields.iter().fold(builder, |builder, field| builder.column(field.as_str(), ty));
        match self.buckets {
            Some(buckets) => builder.salt(Salt::Buckets(buckets)).build(),
            None => builder.build(),
        }
    }
}

/// The database: `peristyle.uri`, by default the embedded engine in a temporary folder, with the `tuned.toml` of
/// `peristyle.config` where there is one.
pub fn uri<'p>(get: impl Fn(&str) -> Option<&'p str>) -> String {
    let uri = get("peristyle.uri").unwrap_or("embedded:").trim();
    match get("peristyle.config") {
        Some(file) => format!("{uri}{}tuned={}", if uri.contains('?') { '&' } else { '?' }, file.trim()),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&'static str, &'static str)]) -> Result<Settings> {
        Settings::new(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    }

    #[test]
    fn without_properties_it_is_the_table_of_the_core_workloads() {
        let spec = settings(&[]).unwrap().spec().unwrap();
        assert_eq!(&**spec.name(), "usertable");
        let names: Vec<&str> = spec.columns().iter().map(|column| &*column.name).collect();
        assert_eq!((names.len(), names[0], names[1], names[10]), (11, "y_id", "field0", "field9"));
    }

    #[test]
    fn a_config_is_a_setting_of_the_uri() {
        let uri = |uri: &'static str| super::uri(|name| Some(if name == "peristyle.uri" { uri } else { "t.toml" }));
        assert_eq!(uri("cql://h/ks"), "cql://h/ks?tuned=t.toml");
        assert_eq!(uri("cql://h/ks?pool=2"), "cql://h/ks?pool=2&tuned=t.toml");
        assert_eq!(super::uri(|_| None), "embedded:");
    }

    #[test]
    fn properties_shape_the_table() {
        let settings = settings(&[
            ("table", "t"),
            ("fieldcount", "2 "),
            ("fieldnameprefix", "f"),
            ("peristyle.buckets", "8"),
            ("peristyle.fieldtype", "blob"),
        ]);
        let spec = settings.unwrap().spec().unwrap();
        assert_eq!(spec.salt(), Some(Salt::Buckets(8)));
        assert_eq!((&*spec.columns()[2].name, spec.columns()[2].ty), ("f1", Type::Blob));
    }

    #[test]
    fn clients_wait_for_their_writes_unless_told_otherwise() {
        let in_flight = |pairs| settings(pairs).unwrap().in_flight;
        assert_eq!(in_flight(&[("peristyle.async.inflight", "5")]), 0);
        assert_eq!(in_flight(&[("peristyle.async", "true")]), 64);
        assert_eq!(in_flight(&[("peristyle.async", "true"), ("peristyle.async.inflight", "5")]), 5);
    }

    #[test]
    fn what_a_property_takes_is_told() {
        for (name, value) in [
            ("fieldcount", "0"),
            ("peristyle.buckets", "257"),
            ("peristyle.batchsize", "x"),
            ("peristyle.async.inflight", "0"),
            ("peristyle.iothreads", "0"),
        ] {
            let message = settings(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(value) && message.contains("number"), "{message}");
        }
        assert!(settings(&[("peristyle.fieldtype", "int")]).unwrap_err().to_string().contains("text or blob"));
    }
}
