//! Which rows travel together in one request.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hasher};

use crate::backend::Topology;
use crate::codec::ordered::encode_key;
use crate::error::Result;
use crate::model::{Key, TableSpec};

/// Which rows are put together into one request.
///
/// A request whose rows have one owner goes to it directly; one with rows of many makes a coordinator send most of them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Grouping {
    /// As they come, wherever they live. The [batch layer](crate::layers::BatchLayer) joins nothing.
    Off,
    /// Those of one partition: cheapest for the servers, where rows share partitions.
    Partition,
    /// Those of one owner: a node, a shard or a region, as the backend's [topology](Topology) tells.
    #[default]
    Owner,
}

impl Grouping {
    /// The names in settings, with what they name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("off", Self::Off), ("partition", Self::Partition), ("owner", Self::Owner)];

    /// Where a row with this full primary key travels.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a key that doesn't fit the table.
    pub(crate) fn place(self, topology: &dyn Topology, table: &TableSpec, key: &Key) -> Result<Place> {
        // Asked for every row: without an allocation each time.
        thread_local! { static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) } }
        let (row, partition) = BYTES.with_borrow_mut(|bytes| hashes(table, key, bytes))?;
        let group = match self {
            Self::Off => 0,
            Self::Partition => partition,
            Self::Owner => topology.owner_id(table, key.prefix(table.partition_len())),
        };
        Ok(Place { group, row, partition })
    }
}

/// Where a row travels, and who it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The same for rows that travel together.
    pub(crate) group: u64,
    /// The same for what is one row, and hardly ever for two.
    pub(crate) row: u64,
    /// The same for what is one partition, and hardly ever for two.
    pub(crate) partition: u64,
}

/// The hashes of the row and of its partition. They are taken of the encoded key, in which values that are one are the same.
fn hashes(table: &TableSpec, key: &Key, bytes: &mut Vec<u8>) -> Result<(u64, u64)> {
    bytes.clear();
    encode_key(key.prefix(table.partition_len()), table.partition_key(), bytes)?;
    let partition = hash(bytes);
    let clustering = key.values().get(table.partition_len()..).unwrap_or_default();
    if clustering.is_empty() {
        return Ok((partition, partition));
    }
    encode_key(clustering, table.clustering_key(), bytes)?;
    Ok((hash(bytes), partition))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// For maps whose keys are hashes already.
#[derive(Debug, Default)]
pub(crate) struct U64Hasher(u64);

impl Hasher for U64Hasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::LocalTopology;
    use crate::model::{Order, Type, Value};

    fn place(grouping: Grouping, partition: i64, clustering: i64) -> Place {
        let table = TableSpec::builder("t").partition("p", Type::I64).clustering("c", Type::I64, Order::Ascending);
        let key = Key::new(vec![Value::from(partition), Value::from(clustering)]);
        grouping.place(&LocalTopology, &table.build().unwrap(), &key).unwrap()
    }

    #[test]
    fn rows_of_one_partition_travel_together_and_others_as_the_setting_says() {
        let groups = |grouping| [(1, 1), (1, 2), (2, 1)].map(|(p, c)| place(grouping, p, c).group);
        let [a, b, c] = groups(Grouping::Partition);
        assert!(a == b && a != c);
        for grouping in [Grouping::Owner, Grouping::Off] {
            let [a, b, c] = groups(grouping);
            assert!(a == b && a == c, "one place owns all");
        }
    }

    #[test]
    fn a_row_is_told_by_its_whole_key_and_a_partition_by_its_own() {
        let [a, b] = [place(Grouping::Owner, 1, 1), place(Grouping::Owner, 1, 2)];
        assert!(a.row != b.row && a.partition == b.partition);
        assert_eq!(a.row, place(Grouping::Off, 1, 1).row);
    }
}
