//! Tables and namespaces.

use std::sync::Arc;

use peristyle_core::model::{HBaseMapping, PreSplit, Salt, TableSpec};
use peristyle_core::request::Schema;
use peristyle_core::{Capability, Error, ErrorKind, Response, Result};

use crate::codec::Layout;
use crate::config::{Api, Transport};
use crate::connection::Call;
use crate::error;
use crate::store::Store;
use crate::wire::{NewTable, TableName, calls, thrift2};

/// The attribute of a table that holds its declaration, as JSON.
const DECLARATION: &[u8] = b"peristyle.table";

impl Store {
    pub(crate) async fn schema(&self, schema: Schema, call: &Call) -> Result<Response> {
        match schema {
            Schema::CreateNamespace { if_absent, .. } => self.create_namespace(if_absent, call).await,
            Schema::Create { table, if_absent } => self.create(&table, if_absent, call).await,
            Schema::Drop { name, if_present } => self.drop_table(name, if_present, call).await,
            Schema::Truncate { name } => self.truncate(name, call).await,
            Schema::Describe { name } => {
                self.describe(name, call).await.map(|spec| Response::Table(spec.map(Box::new)))
            }
            other => Err(Error::invalid(format!("the HBase backend knows no {}", other.operation()))),
        }
    }

    fn named(&self, name: Arc<str>) -> TableName {
        TableName { namespace: Arc::clone(&self.namespace), name }
    }

    async fn create_namespace(&self, if_absent: bool, call: &Call) -> Result<Response> {
        let namespace = &self.namespace;
        if &**namespace == "default" && if_absent {
            return Ok(Response::Done);
        }
        if self.config.api == Api::Thrift1 {
            return Err(Error::invalid("Thrift 1 makes no namespaces; make it through Thrift 2, or use default"));
        }
        if if_absent && thrift2::namespace(&self.gateways, call, namespace).await.is_ok() {
            return Ok(Response::Done);
        }
        match thrift2::create_namespace(&self.gateways, call, namespace).await {
            Err(error) if if_absent && error.kind() == ErrorKind::AlreadyExists => Ok(Response::Done),
            created => created.map(|()| Response::Done),
        }
    }

    async fn create(&self, spec: &Arc<TableSpec>, if_absent: bool, call: &Call) -> Result<Response> {
        let layout = self.layout(spec)?;
        let new = new_table(&layout)?;
        self.check_gateway()?;
        match calls::create_table(&self.gateways, call, &layout.table, new.clone()).await {
            Err(error) if if_absent && error.kind() == ErrorKind::AlreadyExists => match self.config.api {
                Api::Thrift2 => self.use_existing(&layout, call).await.map(|()| Response::Done),
                Api::Thrift1 => Ok(Response::Done),
            },
            Err(error) => Err(error),
            Ok(()) => self.check_table(&layout, &new, call).await.map(|()| Response::Done),
        }
    }

    /// A framed gateway makes tables with other split keys and attributes than it was given, and says nothing.
    fn check_gateway(&self) -> Result<()> {
        if self.config.transport != Transport::Framed
            || self.config.api == Api::Thrift1
            || !self.config.schema_gateways.is_empty()
        {
            return Ok(());
        }
        Err(Error::invalid(
            "framed gateways garble what tables are made with; name a gateway without frames in schema_gateways",
        ))
    }

    /// Takes a table of another program as it is declared here, if it has the families for it.
    async fn use_existing(&self, layout: &Layout, call: &Call) -> Result<()> {
        let live = thrift2::describe(&self.gateways, call, &layout.table).await?;
        if live.attributes.contains_key(DECLARATION) {
            return Ok(());
        }
        let has = |name: &Vec<u8>| live.families.iter().any(|family| family.name == *name);
        if let Some(missing) = layout.families().into_iter().find(|family| !has(family)) {
            let has: Vec<_> = live.families.iter().map(|family| String::from_utf8_lossy(&family.name)).collect();
            let message = format!(
                "the table is there without the family {}; it has {}: map the columns to those",
                String::from_utf8_lossy(&missing),
                has.join(", ")
            );
            return Err(Error::new(ErrorKind::SchemaMismatch, message));
        }
        self.adopt(&layout.spec);
        Ok(())
    }

    /// Checks that a new table is as it was asked for: some gateways garble what it is made with, without a word.
    async fn check_table(&self, layout: &Layout, new: &NewTable, call: &Call) -> Result<()> {
        let call = call.reading();
        let mut starts: Vec<Vec<u8>> =
            self.look(&layout.table, &call).await?.into_iter().map(|region| region.start).collect();
        starts.sort_unstable();
        let found = starts.strip_prefix(&[Vec::new()]).unwrap_or(&starts);
        if found != new.splits {
            let (found, asked) = (found.len(), new.splits.len());
            return Err(garbled(&format!("regions: {found} split keys instead of {asked}, or other bytes")));
        }
        match calls::differences(&self.gateways, &call, &layout.table, new).await? {
            Some(differences) => Err(garbled(&differences)),
            None => Ok(()),
        }
    }

    async fn drop_table(&self, name: Arc<str>, if_present: bool, call: &Call) -> Result<Response> {
        let table = self.named(name);
        self.forget(&table.name);
        let dropped = match self.disable(&table, call).await {
            Ok(()) => calls::delete_table(&self.gateways, call, &table).await,
            Err(error) => Err(error),
        };
        match dropped {
            Err(error) if if_present && error.kind() == ErrorKind::NotFound => Ok(Response::Done),
            dropped => dropped.map(|()| Response::Done),
        }
    }

    async fn truncate(&self, name: Arc<str>, call: &Call) -> Result<Response> {
        self.need_thrift2(Capability::Truncate)?;
        let table = self.named(name);
        self.disable(&table, call).await?;
        thrift2::truncate(&self.gateways, call, &table).await.map(|()| Response::Done)
    }

    /// Disables a table; it may be disabled already, by an attempt that was cut short.
    async fn disable(&self, table: &TableName, call: &Call) -> Result<()> {
        match calls::disable(&self.gateways, call, table).await {
            Err(error) if error::is_disabled(&error) => Ok(()),
            disabled => disabled,
        }
    }

    async fn describe(&self, name: Arc<str>, call: &Call) -> Result<Option<TableSpec>> {
        self.need_thrift2(Capability::Introspection)?;
        let table = self.named(name);
        let call = call.reading();
        let attributes = match thrift2::describe(&self.gateways, &call, &table).await {
            Ok(live) => live.attributes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        self.look(&table, &call).await?;
        let Some(declaration) = attributes.get(DECLARATION) else {
            return match self.adopted(&table.name) {
                Some(spec) => Ok(Some(TableSpec::clone(&spec))),
                None => Err(foreign()),
            };
        };
        let spec = serde_json::from_slice(declaration).map_err(|cause| {
            let message = format!("the table's declaration can't be read: {cause}; was it written by a newer version?");
            Error::new(ErrorKind::SchemaMismatch, message)
        })?;
        Ok(Some(spec))
    }
}

fn garbled(what: &str) -> Error {
    let message = format!("the table was made with other {what}; drop it, and use a gateway without frames");
    Error::new(ErrorKind::Corrupt, message)
}

fn foreign() -> Error {
    let message =
        "another program made the table, so its columns aren't known; declare it with create_table_if_absent first";
    Error::new(ErrorKind::SchemaMismatch, message)
}

fn new_table(layout: &Layout) -> Result<NewTable> {
    let spec = &*layout.spec;
    let fallback = HBaseMapping::default();
    let mapping = spec.hbase().unwrap_or(&fallback);
    let declaration = serde_json::to_vec(spec)
        .map_err(|cause| Error::new(ErrorKind::Internal, format!("the table can't be written as JSON: {cause}")))?;
    Ok(NewTable {
        families: layout.families(),
        compression: mapping.compression,
        encoding: mapping.block_encoding,
        attributes: vec![(DECLARATION.to_vec(), declaration)],
        splits: mapping.pre_split.as_ref().map_or(Ok(Vec::new()), |split| split_keys(split, spec.salt()))?,
    })
}

/// Where a new table is split.
fn split_keys(split: &PreSplit, salt: Option<Salt>) -> Result<Vec<Vec<u8>>> {
    match (split, salt) {
        (PreSplit::Uniform(regions @ 1..=65_536), _) => Ok(uniform(*regions)),
        (PreSplit::Uniform(regions), _) => Err(Error::invalid(format!("{regions} regions: choose 1 to 65536"))),
        (PreSplit::Buckets, Some(Salt::Buckets(buckets))) => {
            Ok((1..buckets).filter_map(|bucket| u8::try_from(bucket).ok()).map(|bucket| vec![bucket]).collect())
        }
        (PreSplit::Buckets, _) => Err(Error::invalid("a split by buckets needs a salt of buckets")),
        _ => Err(Error::unsupported(Capability::Salt, crate::NAME)),
    }
}

/// The keys of `RegionSplitter.UniformSplit`: the 8-byte multiples of an even part of all of them.
fn uniform(regions: u32) -> Vec<Vec<u8>> {
    let part = (1_u128 << 64) / u128::from(regions.max(1));
    let key = |place: u32| u64::try_from(part * u128::from(place)).unwrap_or(u64::MAX).to_be_bytes().to_vec();
    (1..regions).map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_split_is_that_of_hbase() {
        let keys = uniform(64);
        assert_eq!(keys.len(), 63);
        assert_eq!(keys[0], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(keys[62], [0xfc, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(uniform(3)[0], [0x55; 8]);
        assert!(uniform(1).is_empty());
    }

    #[test]
    fn a_split_by_buckets_has_a_region_for_each() {
        let keys = split_keys(&PreSplit::Buckets, Some(Salt::Buckets(256))).unwrap();
        assert_eq!((keys.len(), &keys[0], &keys[254]), (255, &vec![1], &vec![255]));
        assert!(split_keys(&PreSplit::Buckets, None).is_err());
        assert!(split_keys(&PreSplit::Uniform(0), None).is_err());
    }
}
