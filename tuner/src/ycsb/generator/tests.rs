//! Distributions, beside those that YCSB's own generators gave.

use super::*;

fn draw(mut choice: Choice, records: u64, draws: usize) -> Vec<u64> {
    let (mut random, sequence) = (Random::new(7), AtomicU64::new(0));
    let inserted = Acknowledged::new(records);
    (0..draws).map(|_| choice.next(&mut random, &sequence, &inserted)).collect()
}

#[test]
fn the_last_record_without_a_gap_before_it_counts() {
    let numbers = Acknowledged::new(10);
    assert_eq!((numbers.next(), numbers.next(), numbers.next()), (10, 11, 12));
    numbers.acknowledge(12);
    numbers.acknowledge(11);
    assert_eq!(numbers.limit(), 10);
    numbers.acknowledge(10);
    assert_eq!(numbers.limit(), 13);
}

#[test]
fn every_choice_stays_within_the_records() {
    for choice in [
        Choice::Uniform { from: 0, count: 100 },
        Choice::scrambled(0, 121),
        Choice::latest(100),
        Choice::hotspot(0, 100, 0.2, 0.8),
        Choice::hotspot(0, 100, 0.0, 0.8),
        Choice::hotspot(0, 100, 1.0, 0.0),
        Choice::exponential(95.0, 85.0),
    ] {
        assert!(draw(choice, 100, 10_000).iter().all(|record| *record < 100));
    }
}

#[test]
fn sequential_requests_go_round() {
    assert_eq!(draw(Choice::Sequential { from: 5, count: 3 }, 8, 5), [5, 6, 7, 5, 6]);
}

#[test]
fn the_hot_set_gets_its_share() {
    let hot = draw(Choice::hotspot(0, 100, 0.2, 0.8), 100, 10_000).iter().filter(|record| **record < 20).count();
    assert!((7_800..8_200).contains(&hot), "{hot}");
}

#[test]
fn lengths_keep_their_bounds() {
    let mut random = Random::new(1);
    for length in [Length::Uniform { from: 3, to: 9 }, Length::zipfian(3, 9)] {
        let lengths: Vec<u64> = (0..1_000).map(|_| length.next(&mut random)).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&3), Some(&9)), "{length:?}");
    }
}

#[test]
fn a_histogram_is_read_and_its_faults_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hist.txt");
    std::fs::write(&path, "BlockSize\t10\n0\t0\n1\t5\n2\t0\n").unwrap();
    let length = Length::histogram(&path).unwrap();
    let mut random = Random::new(1);
    let lengths: Vec<u64> = (0..100).map(|_| length.next(&mut random)).collect();
    assert!(lengths.contains(&20) && lengths.iter().all(|length| [10, 20].contains(length)));
    std::fs::write(&path, "Block\t10\n").unwrap();
    assert!(Length::histogram(&path).unwrap_err().to_string().contains("BlockSize"));
}

/// Counts by name and number that YCSB's own generators gave: those at hand, or fresh ones from the file that
/// `PERISTYLE_YCSB_SAMPLES` names.
fn samples() -> Vec<(String, u64, u64)> {
    let text = match std::env::var("PERISTYLE_YCSB_SAMPLES") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => include_str!("../samples.csv").to_owned(),
    };
    let sample = |line: &str| {
        let parts: Vec<&str> = line.split(',').collect();
        (parts[0].to_owned(), parts[1].parse().unwrap(), parts[2].parse().unwrap())
    };
    text.lines().map(sample).collect()
}

fn counts(name: &str) -> Vec<f64> {
    let counts: Vec<f64> = samples().into_iter().filter(|it| it.0 == name).map(|it| real(it.2)).collect();
    assert_eq!(counts.len(), 100, "{name}");
    counts
}

/// Whether two samples of one size may come from one distribution: the chi-square statistic of both lies within five standard
/// deviations of its mean, which chance misses once in a million times.
fn agree(name: &str, ours: &[u64]) {
    let theirs = counts(name);
    let mut own = vec![0.0; theirs.len()];
    for number in ours {
        own[usize::try_from(*number).unwrap()] += 1.0;
    }
    let pairs: Vec<(f64, f64)> = own.into_iter().zip(theirs).filter(|(a, b)| a + b > 0.0).collect();
    let statistic: f64 = pairs.iter().map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
    let freedom = crate::stats::real_len(pairs.len()) - 1.0;
    assert!(statistic < freedom + 5.0 * (2.0 * freedom).sqrt(), "{name}: chi-square {statistic} of {freedom}");
}

const DRAWS: usize = 200_000;

#[test]
fn choices_are_as_frequent_as_those_of_ycsb() {
    for (name, choice) in [
        ("uniform", Choice::Uniform { from: 0, count: 100 }),
        ("scrambled", Choice::scrambled(0, 100)),
        ("latest", Choice::latest(100)),
        ("hotspot", Choice::hotspot(0, 100, 0.2, 0.8)),
        ("exponential", Choice::exponential(95.0, 85.714_285_71)),
    ] {
        agree(name, &draw(choice, 100, DRAWS));
    }
}

#[test]
fn lengths_are_as_frequent_as_those_of_ycsb() {
    let mut random = Random::new(3);
    let histogram = Length::Histogram { block: 10, buckets: vec![3, 5, 0, 7, 1], area: 16 };
    for (name, length) in [("zipfian", Length::zipfian(1, 90)), ("histogram", histogram)] {
        let lengths: Vec<u64> = (0..DRAWS).map(|_| length.next(&mut random)).collect();
        agree(name, &lengths);
    }
}

#[test]
#[should_panic(expected = "chi-square")]
fn another_distribution_does_not_pass_for_it() {
    agree("hotspot", &draw(Choice::hotspot(0, 100, 0.2, 0.83), 100, DRAWS));
}

#[test]
fn hashes_are_those_of_ycsb() {
    let hashes: Vec<_> = samples().into_iter().filter(|it| it.0 == "hash").collect();
    assert!(hashes.len() >= 8);
    for (_, number, hash) in hashes {
        assert_eq!(fnv_hash(number), hash, "{number}");
    }
}
