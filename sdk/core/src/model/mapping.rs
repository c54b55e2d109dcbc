//! How a table lies on a backend that needs to be told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a table lies on HBase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HBaseMapping {
    /// The namespace; default `default`.
    pub namespace: String,
    /// The column family of columns that have no entry in `columns`; default `cf`.
    pub family: String,
    /// `family:qualifier` by column name; the others are `family:name`.
    pub columns: BTreeMap<String, String>,
    /// How key columns become bytes; default [`KeyEncoding::Ordered`].
    pub key_encoding: KeyEncoding,
    /// How the table is split when it is created; default: not at all.
    pub pre_split: Option<PreSplit>,
    /// How the blocks of a new table's families are compressed; default [`Compression::None`].
    pub compression: Compression,
    /// How the keys within a block of a new table's families are encoded; default [`BlockEncoding::None`].
    pub block_encoding: BlockEncoding,
}

impl Default for HBaseMapping {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            family: "cf".to_owned(),
            columns: BTreeMap::new(),
            key_encoding: KeyEncoding::default(),
            pre_split: None,
            compression: Compression::default(),
            block_encoding: BlockEncoding::default(),
        }
    }
}

/// How typed key columns become a row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyEncoding {
    /// Byte order is the order of the typed tuples, descending columns included.
    #[default]
    Ordered,
    /// The layout of HBase's own `Bytes.toBytes`, for tables that other programs wrote.
    Raw,
}

/// How a new HBase table is split into regions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PreSplit {
    /// This many regions of equal size over the whole key space, as `UniformSplit` makes them.
    Uniform(u32),
    /// One region per salt bucket.
    Buckets,
}

/// How HBase compresses blocks. All but `none` and `gz` need codecs on the region servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gz,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// How HBase encodes the keys within a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockEncoding {
    /// In full.
    #[default]
    None,
    /// Without the bytes that equal the key before.
    Prefix,
    /// As differences to the key before, timestamps included.
    Diff,
    /// As `diff`, quicker to read.
    FastDiff,
    /// In full, with an index of the rows.
    RowIndexV1,
}
