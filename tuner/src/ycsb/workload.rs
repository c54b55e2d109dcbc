//! The core workload: what is done, to which records, with which values.

use std::path::Path;

use bytes::Bytes;

use super::generator::{Choice, Length};
use super::keys::{KeyNames, integrity_value};
use super::properties::Properties;
use super::random::Random;
use crate::failure::{Failure, Result};
use crate::stats::{real, whole};
use crate::workload::mix;

/// What YCSB takes `recordcount` to be where it is absent.
const UNBOUNDED_RECORDS: u64 = 2_147_483_647;
/// Random letters made once, of which values are slices.
const POOL: usize = 1 << 20;

/// An operation of the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// The core workload with its properties.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Core {
    names: KeyNames,
    fields: Vec<String>,
    length: Length,
    letters: Bytes,
    pub(super) integrity: bool,
    pub(super) read_all: bool,
    pub(super) read_all_by_name: bool,
    pub(super) write_all: bool,
    /// Each with the sum of its proportion and those before it.
    mix: Vec<(f64, Operation)>,
    pub(super) choice: Choice,
    scan_length: Length,
    /// The number of records that there are before the run.
    pub(crate) records: u64,
    pub(super) insert_start: u64,
    /// How many records are loaded from there on.
    pub(crate) insert_count: u64,
    pub(super) retries: u64,
    /// Seconds between them.
    pub(super) retry_interval: f64,
    pub(super) keep_going: bool,
}

impl Core {
    /// Reads the properties; `fields` are the names of the table's.
    pub(crate) fn new(properties: &Properties, fields: &[String]) -> Result<Self> {
        if let Some(class) = properties.get("workload")
            && class.trim().rsplit('.').next() != Some("CoreWorkload")
        {
            return Err(Failure::input(format!("workload={class}: only site.ycsb.workloads.CoreWorkload is known")));
        }
        let records = match properties.number("recordcount", 0)? {
            0 => UNBOUNDED_RECORDS,
            records => records,
        };
        let insert_start = properties.number("insertstart", 0)?;
        let insert_count = properties.number("insertcount", records.saturating_sub(insert_start))?;
        if insert_count == 0 || insert_count.checked_add(insert_start).is_none_or(|end| end > records) {
            return Err(Failure::input(format!(
                "insertstart={insert_start} and insertcount={insert_count}: both together are at most recordcount={records}, and insertcount is above 0"
            )));
        }
        let integrity = properties.flag("dataintegrity", false);
        let length = field_length(properties)?;
        if integrity && !matches!(length, Length::Constant(_)) {
            return Err(Failure::input("dataintegrity=true takes fieldlengthdistribution=constant"));
        }
        let mix = mixture(properties)?;
        let choice = choice(properties, records, insert_start, insert_count)?;
        let longest = usize::try_from(length.longest()).unwrap_or(usize::MAX).min(1 << 30);
        Ok(Self {
            names: KeyNames {
                ordered: properties.get("insertorder").is_some_and(|order| order.trim() != "hashed"),
                padding: properties.number("zeropadding", 1)?,
            },
            fields: fields.to_vec(),
            length,
            letters: letters(POOL + longest),
            integrity,
            read_all: properties.flag("readallfields", true),
            read_all_by_name: properties.flag("readallfieldsbyname", false),
            write_all: properties.flag("writeallfields", false),
            mix,
            choice,
            scan_length: scan_length(properties)?,
            records,
            insert_start,
            insert_count,
            retries: properties.number("core_workload_insertion_retry_limit", 0)?,
            retry_interval: properties.number("core_workload_insertion_retry_interval", 3.0)?,
            keep_going: properties.flag("core_workload_insertion_keep_going_on_error", false),
        })
    }

    /// The operations of the mix, each with its share.
    pub(super) fn shares(&self) -> impl Iterator<Item = (Operation, f64)> {
        let sums = std::iter::once(0.0).chain(self.mix.iter().map(|(sum, _)| *sum));
        let all = self.mix.last().map_or(1.0, |(sum, _)| *sum);
        self.mix.iter().zip(sums).map(move |((sum, operation), before)| (*operation, (sum - before) / all))
    }

    /// The mean length of a field, in bytes.
    pub(super) fn mean_length(&self) -> usize {
        const SAMPLE: u64 = 64;
        let mut random = Random::new(1);
        let total: u64 = (0..SAMPLE).map(|_| self.length.next(&mut random)).sum();
        usize::try_from(total / SAMPLE).unwrap_or(usize::MAX)
    }

    /// Whether records are inserted.
    pub(crate) fn inserts(&self) -> bool {
        self.mix.iter().any(|(_, operation)| *operation == Operation::Insert)
    }

    /// Whether records are scanned.
    pub(crate) fn scans(&self) -> bool {
        self.mix.iter().any(|(_, operation)| *operation == Operation::Scan)
    }

    pub(super) fn operation(&self, random: &mut Random) -> Operation {
        let drawn = random.unit() * self.mix.last().map_or(0.0, |(sum, _)| *sum);
        let found = self.mix.iter().find(|(sum, _)| drawn < *sum).or(self.mix.last());
        found.map_or(Operation::Read, |(_, operation)| *operation)
    }

    pub(super) fn key(&self, number: u64) -> String {
        self.names.name(number)
    }

    pub(super) fn field(&self, random: &mut Random) -> usize {
        usize::try_from(random.below(self.fields.len() as u64)).unwrap_or_default()
    }

    pub(super) fn scan_length(&self, random: &mut Random) -> usize {
        usize::try_from(self.scan_length.next(random)).unwrap_or(usize::MAX)
    }

    /// Values for all fields of a record.
    pub(super) fn whole_record(&self, key: &str, random: &mut Random) -> Vec<(usize, Bytes)> {
        (0..self.fields.len()).map(|field| (field, self.value(key, field, random))).collect()
    }

    pub(super) fn value(&self, key: &str, field: usize, random: &mut Random) -> Bytes {
        let length = usize::try_from(self.length.next(random)).unwrap_or(usize::MAX);
        if self.integrity {
            return self.expected(key, field, length).into();
        }
        let start = usize::try_from(random.below(POOL as u64)).unwrap_or_default();
        self.letters.slice(start..(start + length).min(self.letters.len()))
    }

    fn expected(&self, key: &str, field: usize, length: usize) -> String {
        integrity_value(key, self.fields.get(field).map_or("", String::as_str), length)
    }

    /// Whether the value of a field is what data integrity demands.
    pub(super) fn is_intact(&self, key: &str, field: usize, value: &[u8]) -> bool {
        let Length::Constant(length) = self.length else { return false };
        self.expected(key, field, usize::try_from(length).unwrap_or(usize::MAX)).as_bytes() == value
    }
}

/// Printable ASCII, as YCSB's values are.
fn letters(count: usize) -> Bytes {
    let words = (0..count.div_ceil(8) as u64).flat_map(|word| mix(0, word).to_le_bytes());
    words.map(|byte| b' ' + byte % 95).collect::<Vec<u8>>().into()
}

fn field_length(properties: &Properties) -> Result<Length> {
    let most: u64 = properties.number("fieldlength", 100)?;
    let least: u64 = properties.number("minfieldlength", 1)?;
    let words = [("constant", 0), ("uniform", 1), ("zipfian", 2), ("histogram", 3)];
    let kind = properties.word("fieldlengthdistribution", &words, 0)?;
    if matches!(kind, 1 | 2) && least > most {
        return Err(Failure::input(format!("minfieldlength={least} is above fieldlength={most}")));
    }
    Ok(match kind {
        0 => Length::Constant(most),
        1 => Length::Uniform { from: least, to: most },
        2 => Length::zipfian(least, most),
        _ => Length::histogram(Path::new(properties.get("fieldlengthhistogram").unwrap_or("hist.txt")))?,
    })
}

fn scan_length(properties: &Properties) -> Result<Length> {
    let (least, most) = (properties.number("minscanlength", 1)?, properties.number("maxscanlength", 1_000)?);
    if least > most {
        return Err(Failure::input(format!("minscanlength={least} is above maxscanlength={most}")));
    }
    let is_uniform = properties.word("scanlengthdistribution", &[("uniform", true), ("zipfian", false)], true)?;
    Ok(if is_uniform { Length::Uniform { from: least, to: most } } else { Length::zipfian(least, most) })
}

fn mixture(properties: &Properties) -> Result<Vec<(f64, Operation)>> {
    let mut sum = 0.0;
    let mut mix = Vec::new();
    for (name, default, operation) in [
        ("readproportion", 0.95, Operation::Read),
        ("updateproportion", 0.05, Operation::Update),
        ("insertproportion", 0.0, Operation::Insert),
        ("scanproportion", 0.0, Operation::Scan),
        ("readmodifywriteproportion", 0.0, Operation::ReadModifyWrite),
    ] {
        let share: f64 = properties.number(name, default)?;
        if share > 0.0 {
            sum += share;
            mix.push((sum, operation));
        }
    }
    if mix.is_empty() || !sum.is_finite() {
        return Err(Failure::input("no operation has a proportion; set readproportion or another above 0"));
    }
    Ok(mix)
}

fn choice(properties: &Properties, records: u64, from: u64, count: u64) -> Result<Choice> {
    let words = ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"].map(|word| (word, word));
    Ok(match properties.word("requestdistribution", &words, "uniform")? {
        "zipfian" => {
            // Room for the records that the run will insert, twice over, so that the same records stay popular.
            let share: f64 = properties.number("insertproportion", 0.0)?;
            let expected = whole((real(properties.number("operationcount", 0)?) * share.max(0.0) * 2.0).floor());
            Choice::scrambled(from, count + expected + 1)
        }
        "latest" => Choice::latest(records),
        "hotspot" => {
            let fraction = |name, default| -> Result<f64> {
                let fraction = properties.number(name, default)?;
                if (0.0..=1.0).contains(&fraction) { Ok(fraction) } else { Err(outside(name, fraction)) }
            };
            Choice::hotspot(from, count, fraction("hotspotdatafraction", 0.2)?, fraction("hotspotopnfraction", 0.8)?)
        }
        "sequential" => Choice::Sequential { from, count },
        "exponential" => {
            let percentile: f64 = properties.number("exponential.percentile", 95.0)?;
            let fraction: f64 = properties.number("exponential.frac", 0.857_142_857_1)?;
            if !(percentile > 0.0 && percentile < 100.0) {
                return Err(Failure::input(format!("exponential.percentile={percentile} is not between 0 and 100")));
            }
            if !(fraction > 0.0 && fraction.is_finite()) {
                return Err(Failure::input(format!("exponential.frac={fraction} is not above 0")));
            }
            Choice::exponential(percentile, real(records) * fraction)
        }
        _ => Choice::Uniform { from, count },
    })
}

fn outside(name: &str, fraction: f64) -> Failure {
    Failure::input(format!("{name}={fraction} is not from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(pairs: &[(&str, &str)]) -> Result<Core> {
        let mut properties = Properties::default();
        for (name, value) in pairs {
            properties.set(name, value);
        }
        Core::new(&properties, &["field0".into(), "field1".into()])
    }

    #[test]
    fn operations_come_in_their_proportions() {
        let core = core(&[("readproportion", "3"), ("updateproportion", "0"), ("scanproportion", "1")]).unwrap();
        let mut random = Random::new(3);
        let operations: Vec<Operation> = (0..4_000).map(|_| core.operation(&mut random)).collect();
        let reads = operations.iter().filter(|operation| **operation == Operation::Read).count();
        let scans = operations.iter().filter(|operation| **operation == Operation::Scan).count();
        assert!(reads + scans == 4_000 && (2_900..3_100).contains(&reads), "{reads} reads, {scans} scans");
    }

    #[test]
    fn values_have_their_length_and_are_printable() {
        let core = core(&[("fieldlength", "300")]).unwrap();
        let record = core.whole_record("user1", &mut Random::new(1));
        assert!(record.len() == 2 && record.iter().all(|(_, value)| value.len() == 300));
        assert!(record.iter().flat_map(|(_, value)| value).all(|byte| (b' '..=b'~').contains(byte)));
    }

    #[test]
    fn values_of_checked_records_follow_from_key_and_field() {
        let core = core(&[("dataintegrity", "true")]).unwrap();
        let value = core.value("user1", 1, &mut Random::new(1));
        assert!(core.is_intact("user1", 1, &value) && !core.is_intact("user1", 0, &value));
    }

    #[test]
    fn bad_properties_are_told_by_name() {
        for (pair, part) in [
            (("workload", "site.ycsb.workloads.RestWorkload"), "RestWorkload"),
            (("recordcount", "many"), "recordcount=many"),
            (("requestdistribution", "normal"), "uniform, zipfian"),
            (("insertstart", "3000000000"), "insertstart=3000000000"),
            (("hotspotdatafraction", "2"), "hotspotdatafraction=2"),
            (("minscanlength", "5000"), "maxscanlength"),
            (("minfieldlength", "500"), "fieldlength"),
        ] {
            let extra = [("requestdistribution", "hotspot"), ("fieldlengthdistribution", "uniform"), pair];
            let message = core(&extra).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let nothing = [("readproportion", "0"), ("updateproportion", "0")];
        assert!(core(&nothing).unwrap_err().to_string().contains("proportion"));
    }
}
