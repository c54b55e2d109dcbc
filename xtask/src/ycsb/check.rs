//! What a result of YCSB says.

/// A result, as YCSB or `tuner ycsb` printed it.
#[derive(Debug)]
pub(crate) struct Results(Vec<(String, String, f64)>);

impl Results {
    pub(crate) fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (metric, rest) = line.strip_prefix('[')?.split_once("], ")?;
            let (measurement, value) = rest.rsplit_once(", ")?;
            Some((metric.to_owned(), measurement.to_owned(), value.parse().ok()?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn value(&self, metric: &str, measurement: &str) -> f64 {
        let found = self.0.iter().find(|it| it.0 == metric && it.1 == measurement);
        found.map_or(0.0, |(_, _, value)| *value)
    }

    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.value("OVERALL", "Throughput(ops/sec)")
    }

    /// Whether so many operations were done, all of them well, and every record that was read alone was intact.
    pub(crate) fn expect(&self, operations: u32) -> Result<(), String> {
        self.expect_done(operations)?;
        let (read, intact) = (self.value("READ", "Operations"), self.value("VERIFY", "Return=OK"));
        if (read - intact).abs() > 0.5 {
            return Err(format!("{read} records read, of which {intact} were verified"));
        }
        Ok(())
    }

    /// Whether so many operations were done, all of them well.
    pub(crate) fn expect_done(&self, operations: u32) -> Result<(), String> {
        let failed = self.0.iter().find(|(metric, measurement, _)| {
            metric.contains("-FAILED")
                || (measurement.starts_with("Return=")
                    && measurement != "Return=OK"
                    && measurement != "Return=BATCHED_OK")
        });
        if let Some((metric, measurement, value)) = failed {
            return Err(format!("[{metric}], {measurement}, {value}"));
        }
        let single = ["READ", "UPDATE", "INSERT", "SCAN"].map(|metric| self.value(metric, "Operations"));
        let done = single.iter().sum::<f64>() - self.value("READ-MODIFY-WRITE", "Operations");
        if (done - f64::from(operations)).abs() > 0.5 {
            return Err(format!("{done} operations, not {operations}"));
        }
        match self.rate() {
            rate if rate > 0.0 => Ok(()),
            rate => Err(format!("a throughput of {rate}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[OVERALL], Throughput(ops/sec), 51.2\n[READ], Operations, 3\n[READ], Return=OK, 3\n[UPDATE], Operations, 2\n\
                        [READ-MODIFY-WRITE], Operations, 1\n[VERIFY], Return=OK, 3\nother";

    #[test]
    fn operations_are_counted_once_and_reads_verified() {
        assert_eq!(Results::parse(GOOD).expect(4), Ok(()));
        assert_eq!(Results::parse(GOOD).expect(5).unwrap_err(), "4 operations, not 5");
        let doubtful = GOOD.replace("[VERIFY], Return=OK, 3", "[VERIFY], Return=OK, 2");
        assert!(Results::parse(&doubtful).expect(4).unwrap_err().contains("verified"));
    }

    #[test]
    fn a_failure_is_told_as_it_stands_there() {
        let failed = format!("{GOOD}\n[VERIFY], Return=UNEXPECTED_STATE, 1");
        assert_eq!(Results::parse(&failed).expect(4).unwrap_err(), "[VERIFY], Return=UNEXPECTED_STATE, 1");
    }
}
