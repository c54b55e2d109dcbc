//! One window of a simulated server: its law, noise, and what time does to it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use statrs::distribution::{ContinuousCDF, Normal};

use super::server::{CORES, Server};
use crate::machine::CpuShares;
use crate::space::Point;
use crate::stats::{Estimate, in_flight, real, real_len, whole};
use crate::target::{Measurement, Schedule};
use crate::workload::mix;

/// Stretches of a window with noise of their own.
const BUCKETS: usize = 30;
/// Steps of a window in open loop.
const STEPS: usize = 3000;
/// The values of latency in a window, at evenly spaced quantiles.
const QUANTILES: usize = 50;
/// The spread of latencies: the standard deviation of their logarithm.
const SPREAD: f64 = 0.25;

/// What is measured of a simulated server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'o> {
    pub(crate) point: Point,
    /// The measured part.
    pub(crate) window: Duration,
    /// When that begins, in virtual time.
    pub(crate) from: Duration,
    /// Which window it is: the noise follows from that.
    pub(crate) number: u64,
    /// Requests per second in open loop.
    pub(crate) offered: Option<f64>,
    /// Operations with their shares of the requests.
    pub(crate) operations: &'o [(&'static str, f64)],
}

/// The noise of one window.
struct Noise {
    seed: u64,
    cv: f64,
    /// What all of the window has in common.
    level: f64,
}

impl Noise {
    /// Half of the variance of a window's mean lies between windows, half within them.
    fn new(server: &Server, number: u64) -> Self {
        let seed = mix(server.seed, number);
        let slow = mix(seed, u64::MAX) & 1 == 1;
        let level = 1.0 + server.cv / 2.0_f64.sqrt() * normal(seed, 0);
        Self { seed, cv: server.cv, level: level.max(0.0) * if slow { 1.0 - server.bimodal } else { 1.0 } }
    }

    fn at(&self, bucket: usize) -> f64 {
        let own = self.cv * (real_len(BUCKETS) / 2.0).sqrt() * normal(self.seed, 1 + bucket as u64);
        self.level * (1.0 + own).max(0.0)
    }
}

/// A normal random number: the sum of twelve uniform ones, less six.
fn normal(seed: u64, number: u64) -> f64 {
    let uniform = |part| real(mix(mix(seed, number), part) >> 11) / real(1 << 53);
    (0..12).map(uniform).sum::<f64>() - 6.0
}

impl Server {
    /// Measures a window. The same order gives the same window.
    pub(crate) fn measure(&self, order: &Order<'_>) -> Measurement {
        let noise = Noise::new(self, order.number);
        let mut times = Times::default();
        let (requests, schedule) = match order.offered {
            None => (self.closed(order, &noise, &mut times), None),
            Some(offered) => {
                let (requests, schedule) = self.open(order, &noise, offered, &mut times);
                (requests, Some(schedule))
            }
        };
        let total: f64 = requests.iter().sum();
        let (share, class) = self.failing(order.point).map_or((0.0, ""), |(share, class)| (share, class));
        let errors = whole((total * share + real(mix(noise.seed, 77) >> 11) / real(1 << 53)).floor());
        let (seconds, batch) = (order.window.as_secs_f64(), f64::from(order.point.batch));
        let bucket = seconds / real_len(BUCKETS);
        let rates: Vec<f64> = requests.iter().map(|requests| requests * batch * (1.0 - share) / bucket).collect();
        let used = self.client_cpu.map(|micros| (total / seconds) * micros / 1e6 / f64::from(CORES));
        let [latencies, service] =
            [times.response, times.service].map(|times| histograms(&times, order.operations, share));
        Measurement {
            rows: whole(total * batch * (1.0 - share)),
            requests: whole(total),
            errors: (errors > 0).then(|| (class.to_owned(), errors)).into_iter().collect(),
            example: (errors > 0).then(|| format!("the simulated server answers {class} at {}", order.point)),
            rate: Estimate::of_series(&rates),
            latencies,
            service,
            schedule,
            in_flight: (total > 0.0).then(|| in_flight(total / seconds, Duration::from_secs_f64(times.mean))),
            elapsed: order.window,
            cpu: used.map(|client| CpuShares { client, others: 0.0 }),
            ..Measurement::default()
        }
    }

    /// Requests by bucket with all clients asking again at once.
    fn closed(&self, order: &Order<'_>, noise: &Noise, times: &mut Times) -> Vec<f64> {
        let (rate, bucket) = (self.requests_per_s(order.point), order.window.as_secs_f64() / real_len(BUCKETS));
        let at = |place: usize| order.from.as_secs_f64() + (real_len(place) + 0.5) * bucket;
        let requests: Vec<f64> =
            (0..BUCKETS).map(|place| rate * self.capacity(at(place)) * noise.at(place) * bucket).collect();
        let total: f64 = requests.iter().sum();
        times.mean = f64::from(order.point.threads) * order.window.as_secs_f64() / total.max(f64::MIN_POSITIVE);
        times.response.spread(times.mean, total);
        let stood = self.freeze.filter(|(from, lasts)| *from < at(BUCKETS) && from + lasts > order.from.as_secs_f64());
        if let Some((_, lasts)) = stood {
            times.response.add(lasts, f64::from(order.point.threads));
        }
        requests
    }

    /// Requests by bucket at an offered rate: those that find no capacity wait, and their wait counts from the intended start.
    fn open(&self, order: &Order<'_>, noise: &Noise, offered: f64, times: &mut Times) -> (Vec<f64>, Schedule) {
        let seconds = order.window.as_secs_f64();
        let (step, most) = (seconds / real_len(STEPS), self.requests_per_s(order.point));
        let alone = self.service_time(order.point, offered);
        let mut requests = vec![0.0; BUCKETS];
        let mut served = 0.0;
        for (place, bucket) in (0..STEPS).map(|place| (place, place * BUCKETS / STEPS)) {
            let end = real_len(place + 1) * step;
            let capacity = most * self.capacity(order.from.as_secs_f64() + end) * noise.at(bucket) * step;
            let waiting = offered * end - served;
            let now = waiting.min(capacity).max(0.0);
            let behind = waiting > capacity;
            let service = if behind { f64::from(order.point.threads) / most } else { alone };
            times.response.add((end - served / offered - step).max(0.0) + service, now);
            times.service.add(service, now);
            served += now;
            if let Some(requests) = requests.get_mut(bucket) {
                *requests += now;
            }
        }
        let intended = whole(offered * seconds);
        times.mean = times.service.mean();
        (requests, Schedule { intended, dropped: intended.saturating_sub(whole(served)) })
    }

    /// The time of a request at this rate: with as many in flight as it needs.
    fn service_time(&self, point: Point, offered: f64) -> f64 {
        let with = |threads| Point { threads, ..point };
        let enough = (1..=point.threads).find(|threads| self.requests_per_s(with(*threads)) >= offered);
        let threads = enough.unwrap_or(point.threads);
        f64::from(threads) / self.requests_per_s(with(threads)).max(f64::MIN_POSITIVE)
    }
}

/// Times of requests in seconds, each with how many took it.
#[derive(Debug, Default)]
struct Weighted(Vec<(f64, f64)>);

/// The times of a window.
#[derive(Debug, Default)]
struct Times {
    response: Weighted,
    /// In open loop; in closed loop both are the same.
    service: Weighted,
    mean: f64,
}

impl Weighted {
    fn add(&mut self, seconds: f64, count: f64) {
        if count > 0.0 {
            self.0.push((seconds, count));
        }
    }

    /// Spreads requests around a mean.
    fn spread(&mut self, mean: f64, count: f64) {
        let shape = Normal::standard();
        for place in 0..QUANTILES {
            let z = shape.inverse_cdf((real_len(place) + 0.5) / real_len(QUANTILES));
            self.add(mean * (SPREAD * z - SPREAD * SPREAD / 2.0).exp(), count / real_len(QUANTILES));
        }
    }

    fn mean(&self) -> f64 {
        let count: f64 = self.0.iter().map(|it| it.1).sum();
        self.0.iter().map(|it| it.0 * it.1).sum::<f64>() / count.max(f64::MIN_POSITIVE)
    }
}

/// A histogram for each operation, of the requests that succeed.
fn histograms(
    times: &Weighted,
    operations: &[(&'static str, f64)],
    failing: f64,
) -> BTreeMap<&'static str, Histogram<u64>> {
    let mut histograms = BTreeMap::new();
    for (name, share) in operations.iter().filter(|_| !times.0.is_empty()) {
        let Ok(mut histogram) = Histogram::new(2) else { continue };
        let mut carried = 0.0;
        for (seconds, count) in &times.0 {
            carried += count * share * (1.0 - failing);
            let now = whole(carried.floor());
            carried -= real(now);
            // It grows as needed.
            let _ = histogram.record_n(whole(seconds * 1e9).max(1), now);
        }
        histograms.insert(*name, histogram);
    }
    histograms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::sim::server::Curve;

    const READ: &[(&str, f64)] = &[("get", 1.0)];

    fn order(threads: u32) -> Order<'static> {
        let point = Point { threads, io_threads: 1, pool: 1, batch: 1 };
        let (window, from) = (Duration::from_secs(10), Duration::from_secs(20));
        Order { point, window, from, number: 1, offered: None, operations: READ }
    }

    fn server() -> Server {
        Server::new(Curve::Usl { lambda: 1000.0, sigma: 0.05, kappa: 0.0005 })
    }

    fn rate(measured: &Measurement) -> f64 {
        measured.rate.unwrap().mean
    }

    fn millis(measured: &Measurement, quantile: f64) -> f64 {
        real(measured.latencies["get"].value_at_quantile(quantile)) / 1e6
    }

    #[test]
    fn without_noise_throughput_is_the_law_and_the_time_in_flight_is_littles() {
        for threads in [1, 8, 44, 200] {
            let measured = server().measure(&order(threads));
            let truth = server().curve.at(f64::from(threads));
            assert!((rate(&measured) / truth - 1.0).abs() < 1e-9, "{threads}");
            assert!((measured.in_flight.unwrap() / f64::from(threads) - 1.0).abs() < 1e-6);
            let mean = measured.latencies["get"].mean() / 1e9;
            assert!((mean * truth / f64::from(threads) - 1.0).abs() < 0.02, "{threads}: {mean}");
        }
    }

    #[test]
    fn windows_scatter_as_asked_and_repeat_themselves_exactly() {
        let server = Server { cv: 0.05, ..server() };
        let rates: Vec<f64> = (0..500).map(|number| rate(&server.measure(&Order { number, ..order(44) }))).collect();
        let Estimate { mean, std_err, .. } = Estimate::of_independent(&rates).unwrap();
        let cv = std_err * 500.0_f64.sqrt() / mean;
        assert!((cv - 0.05).abs() < 0.006 && (mean / 10_742.0 - 1.0).abs() < 0.01, "{cv} {mean}");
        let again = server.measure(&Order { number: 3, ..order(44) });
        assert_eq!(rate(&again).to_bits(), rates[3].to_bits());
    }

    #[test]
    fn a_standstill_shows_in_the_tail_of_an_open_loop_and_hides_in_a_closed_one() {
        // 1000 requests per second, for which the server has ten times the capacity, and a standstill of 5 s in 10 s.
        let server = Server { freeze: Some((22.0, 5.0)), ..server() };
        let open = server.measure(&Order { offered: Some(1000.0), ..order(44) });
        assert!((4800.0..5100.0).contains(&millis(&open, 0.99)), "{}", millis(&open, 0.99));
        assert!(millis(&open, 0.25) < 2.0 && millis(&open, 0.75) > 2000.0);
        let service = real(open.service["get"].value_at_quantile(0.99)) / 1e6;
        assert!(service < 10.0, "{service}");
        assert_eq!(open.schedule.unwrap(), Schedule { intended: 10_000, dropped: 0 });
        let closed = server.measure(&order(44));
        assert!(millis(&closed, 0.99) < 100.0 && millis(&closed, 1.0) > 4900.0);
    }

    #[test]
    fn an_offer_beyond_the_capacity_is_not_met_and_what_is_dropped_is_counted() {
        let open = server().measure(&Order { offered: Some(20_000.0), ..order(44) });
        let Schedule { intended, dropped } = open.schedule.unwrap();
        assert_eq!((intended, open.requests + dropped), (200_000, 200_000));
        assert!((rate(&open) / 10_742.0 - 1.0).abs() < 0.01 && dropped > 90_000);
        assert!(millis(&open, 0.99) > 4000.0);
    }

    #[test]
    fn time_slows_and_speeds_the_server() {
        let drifting = Server { drift: Some((0.2, 25.0)), ..server() };
        assert!((rate(&drifting.measure(&order(44))) / 10_742.0 - 0.9).abs() < 0.01);
        let warming = Server { warmup: 60.0, ..server() };
        assert!((rate(&warming.measure(&order(44))) / 10_742.0 - 0.708).abs() < 0.01);
        let nothing = Server { zero_ops: true, ..server() }.measure(&order(44));
        assert_eq!((nothing.rows, nothing.requests, rate(&nothing)), (0, 0, 0.0));
        assert!(nothing.in_flight.is_none());
    }

    #[test]
    fn requests_that_fail_are_counted_by_class_and_are_no_throughput() {
        let failing = Server { errors_above: Some(20.0), error_rate: 0.1, ..server() };
        let above = failing.measure(&order(44));
        let errors = above.errors["overloaded"];
        assert!(errors.abs_diff(above.requests / 10) <= 1, "{errors} of {}", above.requests);
        assert!((rate(&above) / 10_742.0 - 0.9).abs() < 0.01);
        assert!(failing.measure(&order(20)).errors.is_empty());
    }

    #[test]
    fn counts_go_beyond_32_bits_and_times_beyond_an_hour() {
        let fast = Server::new(Curve::Usl { lambda: 1e10, sigma: 0.0, kappa: 0.0 });
        let measured = fast.measure(&order(1));
        assert!(measured.requests > u64::from(u32::MAX) && measured.latencies["get"].len() > u64::from(u32::MAX));
        let slow = Server::new(Curve::Usl { lambda: 1.0 / 7200.0, sigma: 0.0, kappa: 0.0 });
        let day = Order { window: Duration::from_secs(86_400), ..order(1) };
        assert!(millis(&slow.measure(&day), 0.5) > 6_000_000.0);
    }
}
