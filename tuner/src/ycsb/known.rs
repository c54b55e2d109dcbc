//! The properties that there are, so that a misspelt one is noticed.

use super::properties::Properties;

/// Those of YCSB's client, core workload and measurements.
const YCSB: &[&str] = &[
    "basicdb.verbose",
    "core_workload_insertion_keep_going_on_error",
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "db",
    "dotransactions",
    "exponential.frac",
    "exponential.percentile",
    "exporter",
    "exportfile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hdrhistogram.fileoutput",
    "hdrhistogram.output.path",
    "hdrhistogram.percentiles",
    "histogram.buckets",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "label",
    "latencytrackederrors",
    "maxexecutiontime",
    "maxscanlength",
    "measurement.histogram.verbose",
    "measurement.interval",
    "measurement.raw.no_summary",
    "measurement.raw.output_file",
    "measurement.trackjvm",
    "measurementtype",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readallfields",
    "readallfieldsbyname",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "reportlatencyforeacherror",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "spin.sleep",
    "status",
    "status.interval",
    "table",
    "target",
    "threadcount",
    "timeseries.granularity",
    "updateproportion",
    "workload",
    "writeallfields",
    "zeropadding",
];

/// Those that YCSB's own workload files have and no version reads.
const UNREAD: [&str; 3] = ["maxscanrate", "scanoptimelimit", "discardscannedrecord"];

/// Those that name a Cassandra for YCSB's own binding.
pub(super) const CASSANDRA: [&str; 5] =
    ["hosts", "port", "cassandra.keyspace", "cassandra.username", "cassandra.password"];

/// A line for each property that nothing reads.
pub(crate) fn warnings(properties: &Properties) -> Vec<String> {
    let known = || YCSB.iter().chain(&UNREAD).chain(&CASSANDRA).chain(&peristyle_ycsb::SETTINGS);
    let unknown = properties.names().filter(|name| !known().any(|known| known == name));
    let line = |name: &str| match nearest(name, known().copied()) {
        Some(nearest) => format!("warning: unknown property {name}; did you mean {nearest}?"),
        None => format!("warning: unknown property {name}; it is not used"),
    };
    unknown.map(line).collect()
}

fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_property_is_told_with_the_nearest() {
        let mut properties = Properties::default();
        for (name, value) in [("operationscount", "5"), ("readproportion", "1"), ("zzz", "1"), ("peristyle.uri", "x")] {
            properties.set(name, value);
        }
        assert_eq!(
            warnings(&properties),
            [
                "warning: unknown property operationscount; did you mean operationcount?",
                "warning: unknown property zzz; it is not used",
            ]
        );
    }
}
