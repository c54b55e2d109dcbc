//! Published data with published parameters.

use super::*;
use crate::judge::RAYTRACER;

/// Gunther, *Guerrilla Capacity Planning* (2007): SPEC SDM91 on a `SPARCcenter` 2000; parameters by the R package usl.
const SPECSDM91: [(f64, f64); 7] =
    [(1.0, 64.9), (18.0, 995.9), (36.0, 1652.4), (72.0, 1853.2), (108.0, 1828.9), (144.0, 1775.0), (216.0, 1702.2)];
/// Schwartz, *Practical Scalability Analysis with the Universal Scalability Law* (2015): a Cisco server at 1 to 32.
const CISCO: [f64; 32] = [
    955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61, 8278.71, 8646.7, 9047.84,
    9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52, 11151.43, 11518.63, 11806.0, 12089.37, 12075.41,
    12177.29, 12211.41, 12158.93, 12155.27, 12118.04, 12140.4, 12074.39,
];

fn near(value: f64, expected: f64, what: &str) {
    assert!((value / expected - 1.0).abs() < 1e-4, "{what}: {value}, not {expected}");
}

fn cisco() -> Vec<(f64, f64)> {
    CISCO.into_iter().zip(1..).map(|(x, n)| (f64::from(n), x)).collect()
}

#[test]
fn specsdm91_has_the_published_coefficients_and_peak() {
    let usl = Usl::fit(&SPECSDM91).unwrap();
    near(usl.sigma, 0.027_728_49, "sigma");
    near(usl.kappa, 0.000_104_365_5, "kappa");
    near(usl.lambda, 89.995_27, "lambda");
    near(usl.peak().unwrap(), 96.519_56, "peak");
    near(usl.at(usl.peak().unwrap()), 1883.899, "throughput at the peak");
    assert_eq!(usl.limit(), None);
}

#[test]
fn the_ray_tracer_has_no_coherency_cost_and_no_peak() {
    let usl = Usl::fit(&RAYTRACER).unwrap();
    assert_eq!((usl.kappa, usl.peak()), (0.0, None));
    near(usl.sigma, 0.057_770_78, "sigma");
    near(usl.lambda, 21.848_84, "lambda");
    near(usl.limit().unwrap(), 378.20, "limit");
    near(usl.at(128.0), 335.455, "X(128)");
}

#[test]
fn a_part_of_a_curve_misleads_so_no_fit_is_an_answer() {
    // The first six points of the ray tracer put the peak at 24, but the data rise up to 64.
    let usl = Usl::fit(&RAYTRACER[..6]).unwrap();
    near(usl.sigma, 0.024_444_04, "sigma");
    near(usl.kappa, 0.001_626_809, "kappa");
    near(usl.lambda, 20.856_05, "lambda");
    near(usl.peak().unwrap(), 24.488, "peak");
    assert!(usl.at(usl.peak().unwrap()) < 0.7 * 310.0);
}

#[test]
fn the_cisco_server_has_the_books_coefficients() {
    let usl = Usl::fit(&cisco()).unwrap();
    near(usl.sigma, 0.026_715_95, "sigma");
    near(usl.kappa, 7.690_939e-4, "kappa");
    near(usl.lambda, 995.648_79, "lambda");
    near(usl.peak().unwrap(), 35.5738, "peak");
    for (n, x) in [(1.0, 995.648_772), (20.0, 11_063.633_126), (35.0, 12_341.745_655)] {
        near(usl.at(n), x, "X");
    }
    assert_eq!(Usl::fit(&cisco()[..6]).unwrap().peak(), None);
}

#[test]
fn exact_data_give_exact_coefficients() {
    let curve = [(1.0, 1.0), (2.0, 1.8868), (4.0, 3.0769), (6.0, 3.5294), (8.0, 3.5398), (10.0, 3.3557)];
    let usl = Usl::fit(&curve).unwrap();
    near(usl.peak().unwrap(), 7.0, "peak");
    near(usl.at(7.0), 3.571_429, "throughput at the peak");
    for (value, expected) in [(usl.sigma, 0.02), (usl.kappa, 0.02), (usl.lambda, 1.0)] {
        assert!((value - expected).abs() < 1e-4, "{usl:?}");
    }
    assert!(usl.residual < 1e-4);
}

#[test]
fn fewer_than_four_distinct_concurrencies_are_refused() {
    assert_eq!(Usl::fit(&SPECSDM91[..3]), None);
    assert_eq!(Usl::fit(&[(1.0, 1.0), (2.0, 1.9), (2.0, 1.8), (4.0, 3.0), (4.0, 3.1)]), None);
    assert_eq!(Usl::fit(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 0.0), (4.0, 3.0), (0.0, 3.1)]), None);
}

#[test]
fn a_straight_line_shares_nothing() {
    let line: Vec<(f64, f64)> = (1..=8).map(|n| (f64::from(n), 100.0 * f64::from(n))).collect();
    let usl = Usl::fit(&line).unwrap();
    assert_eq!((usl.peak(), usl.limit()), (None, None), "{usl:?}");
}
