//! What all requests share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use peristyle_core::clock::Clock;
use peristyle_core::model::TableSpec;
use peristyle_core::{Capability, Error, Result};

use crate::codec::Layout;
use crate::config::{Api, HBaseConfig};
use crate::connection::Gateways;
use crate::error;
use crate::topology::Regions;

/// The gateways and what is known of the tables.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) config: HBaseConfig,
    pub(crate) namespace: Arc<str>,
    pub(crate) gateways: Gateways,
    pub(crate) regions: Regions,
    pub(crate) clock: Clock,
    layouts: RwLock<Vec<Known>>,
    /// Tables of other programs, as they were declared here: their own descriptions tell nothing.
    adopted: RwLock<HashMap<Arc<str>, Arc<TableSpec>>>,
    closed: AtomicBool,
}

/// How a table lies, once for each name.
#[derive(Debug)]
struct Known {
    layout: Arc<Layout>,
    /// The same declaration, as the last request had it: to compare addresses is enough then.
    last: Arc<TableSpec>,
}

impl Known {
    fn is_named(&self, name: &str) -> bool {
        **self.layout.spec.name() == *name
    }
}

/// The entry of this declaration.
fn find<'a>(layouts: &'a [Known], table: &TableSpec) -> Option<&'a Known> {
    layouts.iter().find(|known| std::ptr::eq(&raw const *known.last, table)).or_else(|| {
        layouts.iter().find(|known| known.is_named(table.name())).filter(|known| *known.layout.spec == *table)
    })
}

impl Store {
    pub(crate) fn new(config: HBaseConfig) -> Result<Self> {
        Ok(Self {
            namespace: Arc::from(config.namespace.as_str()),
            gateways: Gateways::new(&config)?,
            regions: Regions::default(),
            clock: Clock::system(),
            layouts: RwLock::default(),
            adopted: RwLock::default(),
            closed: AtomicBool::new(false),
            config,
        })
    }

    /// How a table lies, made once for each declaration.
    pub(crate) fn layout(&self, table: &Arc<TableSpec>) -> Result<Arc<Layout>> {
        let known = find(&self.layouts.read().unwrap_or_else(PoisonError::into_inner), table)
            .map(|known| (Arc::clone(&known.layout), Arc::ptr_eq(&known.last, table)));
        let layout = match known {
            Some((layout, true)) => return Ok(layout),
            Some((layout, false)) => layout,
            None => {
                let mut layout = Layout::new(Arc::clone(table), &self.namespace)?;
                layout.regions = self.regions.of(table.name());
                Arc::new(layout)
            }
        };
        let mut layouts = self.layouts.write().unwrap_or_else(PoisonError::into_inner);
        layouts.retain(|known| !known.is_named(table.name()));
        layouts.push(Known { layout: Arc::clone(&layout), last: Arc::clone(table) });
        Ok(layout)
    }

    /// Looks into how a table lies, if that was asked for before.
    pub(crate) fn with_known_layout<T>(&self, table: &TableSpec, read: impl FnOnce(&Layout) -> Option<T>) -> Option<T> {
        read(&find(&self.layouts.read().unwrap_or_else(PoisonError::into_inner), table)?.layout)
    }

    /// Remembers how a table of another program was declared.
    pub(crate) fn adopt(&self, table: &Arc<TableSpec>) {
        let mut adopted = self.adopted.write().unwrap_or_else(PoisonError::into_inner);
        adopted.insert(Arc::clone(table.name()), Arc::clone(table));
    }

    /// How a table of another program was declared.
    pub(crate) fn adopted(&self, name: &str) -> Option<Arc<TableSpec>> {
        self.adopted.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget(&self, name: &str) {
        self.adopted.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.regions.forget(name);
    }

    /// Refuses what Thrift 1 has no call for.
    pub(crate) fn need_thrift2(&self, capability: Capability) -> Result<()> {
        match self.config.api {
            Api::Thrift2 => Ok(()),
            Api::Thrift1 => Err(Error::unsupported(capability, crate::NAME)),
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(error::closed()) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.gateways.close();
    }
}
