//! How evenly the requests of a workload are spread over the nodes, shards or regions that own their rows.

use std::collections::HashMap;
use std::sync::Arc;

use peristyle::{Owner, Topology};

use super::chooser::Chooser;
use crate::stats::{real, real_len};
use crate::workload::Workload;

/// Requests that are looked at.
const SAMPLE: u64 = 4096;
/// An owner with more than so many times an even share has too much, where that is not chance: by so many standard errors.
const TOO_MUCH: f64 = 1.5;
const CERTAIN: f64 = 4.0;

/// A sentence where one owner gets far more requests than the others: its connections and its processor are full first, whatever the
/// rest of the cluster could do. `None` where they are spread evenly, where there is one owner, and where owners aren't known.
pub(crate) fn uneven(topology: &dyn Topology, workload: &Arc<Workload>) -> Option<String> {
    let mut chooser = Chooser::new(Arc::clone(workload), Arc::default(), 0, 0, 1);
    let mut counts: HashMap<Owner, u64> = HashMap::new();
    for _ in 0..SAMPLE {
        let owner = topology.owner(&workload.table, chooser.partition().values())?;
        *counts.entry(owner).or_default() += 1;
    }
    let owners = real_len(counts.len());
    let (busiest, most) = counts.into_iter().max_by_key(|it| it.1)?;
    let even = real(SAMPLE) / owners;
    let is_too_much = real(most) > TOO_MUCH * even && real(most) - even > CERTAIN * even.sqrt();
    is_too_much.then(|| {
        format!(
            "{} gets {:.0} % of the requests, and each of {owners:.0} owners would get {:.0} % of an even load: its connections fill \
             first; spread the keys",
            name(&busiest),
            real(most) / real(SAMPLE) * 100.0,
            100.0 / owners
        )
    })
}

fn name(owner: &Owner) -> String {
    let region = owner.region.as_ref().map_or_else(String::new, |region| format!("region {region} of "));
    let shard = owner.shard.map_or_else(String::new, |shard| format!("shard {shard} of "));
    format!("{region}{shard}{}", owner.node)
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};

    use peristyle::model::{TableSpec, Value};
    use peristyle::request::ScanRange;

    use super::*;
    use crate::workload::Keys;

    /// A node with so many shards.
    struct Sharded(u64);

    impl Topology for Sharded {
        fn owner(&self, _: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
            let mut hasher = DefaultHasher::new();
            format!("{partition_key:?}").hash(&mut hasher);
            let shard = u32::try_from(hasher.finish() % self.0).ok();
            Some(Owner { node: Arc::from("10.0.0.1:9042"), shard, region: None, local: false })
        }

        fn split(&self, _: &TableSpec, _: usize) -> Vec<ScanRange> {
            vec![ScanRange::All]
        }
    }

    fn found(shards: u64, keys: Keys) -> Option<String> {
        let mut workload = Workload::find("title-read", 1).unwrap();
        workload.operations.iter_mut().for_each(|operation| operation.keys = keys);
        uneven(&Sharded(shards), &Arc::new(workload))
    }

    #[test]
    fn a_shard_that_gets_more_than_the_others_is_named_with_its_share() {
        assert_eq!((found(1, Keys::Zipfian), found(8, Keys::Uniform), found(64, Keys::Uniform)), (None, None, None));
        let told = found(16, Keys::Zipfian).unwrap();
        assert!(
            told.starts_with("shard ") && told.contains(" of 10.0.0.1:9042 gets ") && told.contains("16 owners"),
            "{told}"
        );
    }
}
