//! HBase as it is fetched, and the launcher it is started with.

use std::path::Path;

use super::{Gateway, HBase};
use crate::Error;
use crate::cds;
use crate::installation::{Installation, Product};
use crate::launcher::Launcher;

/// The release of Apache HBase that is fetched.
pub const HBASE_VERSION: &str = "2.6.1";

pub(super) static PRODUCT: Product = Product {
    name: "HBase 2.6.1",
    folder: "hbase-2.6.1",
    main_jar: "hbase-thrift-2.6.1.jar",
    dependencies: include_str!("dependencies.xml"),
    megabytes: 84,
    launcher: Some(Launcher {
        sources: &[
            ("Control.java", include_str!("launcher/Control.java")),
            ("Gateway.java", include_str!("launcher/Gateway.java")),
            ("Server.java", include_str!("launcher/Server.java")),
        ],
    }),
    record,
};

/// Both gateways in the process, so that the archive serves those in processes of their own too.
fn record(bare: &Installation, target: &Path) -> Result<(), Error> {
    let mut builder = HBase::builder().region_servers(1).gateways([Gateway::thrift2(), Gateway::thrift1()]);
    for option in cds::recording(target) {
        builder = builder.jvm_option(option);
    }
    builder.start_from(bare)?.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_fetched() {
        let Product { name, folder, main_jar, dependencies, .. } = &PRODUCT;
        for text in [name, folder, main_jar, dependencies] {
            assert!(text.contains(HBASE_VERSION), "{text}");
        }
    }
}
