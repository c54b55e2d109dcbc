//! Cassandra as it is fetched.

use std::path::Path;

use super::Cassandra;
use crate::Error;
use crate::cds;
use crate::installation::{Installation, Product};

/// The release of Apache Cassandra that is fetched.
pub const CASSANDRA_VERSION: &str = "5.0.6";

pub(super) static PRODUCT: Product = Product {
    name: "Cassandra 5.0.6",
    folder: "cassandra-5.0.6",
    main_jar: "cassandra-all-5.0.6.jar",
    dependencies: "    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>5.0.6</version>
    </dependency>
",
    megabytes: 66,
    launcher: None,
    record,
};

fn record(bare: &Installation, target: &Path) -> Result<(), Error> {
    let mut builder = Cassandra::builder();
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
            assert!(text.contains(CASSANDRA_VERSION), "{text}");
        }
    }
}
