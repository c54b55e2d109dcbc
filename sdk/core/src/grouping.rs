//! Which rows travel together in one request.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use crate::backend::Topology;
use crate::codec::ordered::encode_key;
use crate::model::{Column, Key, TableSpec, Value};

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
    pub(crate) fn place(self, topology: &dyn Topology, table: &TableSpec, key: &Key) -> Place {
        let place = self.ungrouped(table, key);
        match self {
            Self::Off | Self::Partition => place,
            Self::Owner => Place { group: topology.owner_id(table, key.prefix(table.partition_len())), ..place },
        }
    }

    /// Where many rows travel, in their order, for one look at the cluster.
    pub(crate) fn places<'k>(
        self,
        topology: &dyn Topology,
        table: &TableSpec,
        keys: impl Iterator<Item = &'k Key> + Clone,
    ) -> Vec<Place> {
        let mut places: Vec<Place> = keys.clone().map(|key| self.ungrouped(table, key)).collect();
        if self != Self::Owner {
            return places;
        }
        let (mut partitions, mut last) = (Vec::new(), None);
        for (key, place) in keys.zip(&places) {
            if last.replace(place.partition) != Some(place.partition) {
                partitions.push(key.prefix(table.partition_len()));
            }
        }
        let owners = topology.owner_ids(table, &partitions);
        for (rows, owner) in places.chunk_by_mut(|a, b| a.partition == b.partition).zip(owners) {
            for place in rows {
                place.group = owner;
            }
        }
        places
    }

    /// Where a row travels, but for its owner.
    fn ungrouped(self, table: &TableSpec, key: &Key) -> Place {
        // Seeded anew in each process, so that nobody can make keys that wait for one another.
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        let mut hasher = SEED.build_hasher();
        let (partition, clustering) = key.values().split_at(table.partition_len().min(key.values().len()));
        identify(partition, table.partition_key(), &mut hasher);
        let partition = hasher.finish();
        identify(clustering, table.clustering_key(), &mut hasher);
        Place { group: if self == Self::Partition { partition } else { 0 }, row: hasher.finish(), partition }
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

/// Hashes values of these columns so that those that are one in a key have the same hash.
fn identify(values: &[Value], columns: &[Column], hasher: &mut impl Hasher) {
    for (value, column) in values.iter().zip(columns) {
        match value {
            Value::I64(number) | Value::Counter(number) => hasher.write_i64(*number),
            Value::Timestamp(timestamp) => hasher.write_i64(timestamp.0),
            Value::Time(time) => hasher.write_i64(time.0),
            Value::I32(number) => hasher.write_i32(*number),
            Value::Date(date) => hasher.write_i32(date.0),
            Value::Uuid(uuid) | Value::TimeUuid(uuid) => hasher.write_u128(uuid.as_u128()),
            Value::Text(text) => write_bytes(text.as_bytes(), hasher),
            Value::Blob(bytes) => write_bytes(bytes, hasher),
            // What has several forms, or is seldom a key. One that fits no column is refused later, wherever it travels.
            other => {
                let mut bytes = Vec::new();
                let _ = encode_key(std::slice::from_ref(other), std::slice::from_ref(column), &mut bytes);
                write_bytes(&bytes, hasher);
            }
        }
    }
}

fn write_bytes(bytes: &[u8], hasher: &mut impl Hasher) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

/// For maps whose keys are hashes already.
#[derive(Debug, Default)]
pub(crate) struct U64Hasher(u64);

impl Hasher for U64Hasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{LocalTopology, Owner};
    use crate::model::{Decimal, Order, Type};
    use crate::request::ScanRange;

    /// Partitions are owned by what they are.
    struct ByFirst;

    impl Topology for ByFirst {
        fn owner(&self, _: &TableSpec, key: &[Value]) -> Option<Owner> {
            Some(Owner { node: format!("{key:?}").into(), shard: None, region: None, local: false })
        }

        fn split(&self, _: &TableSpec, _: usize) -> Vec<ScanRange> {
            Vec::new()
        }
    }

    fn place(grouping: Grouping, partition: i64, clustering: i64) -> Place {
        let table = TableSpec::builder("t").partition("p", Type::I64).clustering("c", Type::I64, Order::Ascending);
        let key = Key::new(vec![Value::from(partition), Value::from(clustering)]);
        grouping.place(&LocalTopology, &table.build().unwrap(), &key)
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
    fn many_rows_travel_where_each_of_them_does() {
        let table = TableSpec::builder("t").partition("p", Type::I64).clustering("c", Type::I64, Order::Ascending);
        let table = table.build().unwrap();
        let keys =
            [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (3, 2)].map(|(p, c): (i64, i64)| Key::new([p.into(), c.into()]));
        for grouping in [Grouping::Off, Grouping::Partition, Grouping::Owner] {
            let all = grouping.places(&ByFirst, &table, keys.iter());
            assert_eq!(all.len(), keys.len());
            for (found, key) in all.iter().zip(&keys) {
                let parts = |place: &Place| (place.group, place.row, place.partition);
                assert_eq!(parts(found), parts(&grouping.place(&ByFirst, &table, key)));
            }
        }
    }

    #[test]
    fn values_that_are_one_in_a_key_make_one_row() {
        let table =
            TableSpec::builder("t").partition("p", Type::Decimal).clustering("c", Type::Decimal, Order::Ascending);
        let table = table.column("v", Type::I64).build().unwrap();
        let decimal = |unscaled: i64, scale| Value::from(Decimal::new(unscaled, scale));
        let row = |p, c| Grouping::Off.place(&LocalTopology, &table, &Key::new([p, c])).row;
        assert_eq!(row(decimal(1, 0), decimal(1, 0)), row(decimal(1, 0), decimal(100, 2)));
        assert_ne!(row(decimal(1, 0), decimal(1, 0)), row(decimal(100, 2), decimal(1, 0)), "partitions differ by form");
        assert_ne!(row(decimal(1, 0), decimal(1, 0)), row(decimal(1, 0), decimal(2, 0)));
    }

    #[test]
    fn a_row_is_told_by_its_whole_key_and_a_partition_by_its_own() {
        let [a, b] = [place(Grouping::Owner, 1, 1), place(Grouping::Owner, 1, 2)];
        assert!(a.row != b.row && a.partition == b.partition);
        assert_eq!(a.row, place(Grouping::Off, 1, 1).row);
    }
}
