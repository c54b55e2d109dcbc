use super::*;
use crate::testkit::simulator::{Course, Usl, WINDOW, sample};

/// Flies over a server; the first `skip` seconds don't count.
fn fly(
    pilot: &mut Pilot,
    dice: &mut fastrand::Rng,
    noise: f64,
    (skip, seconds): (u32, u32),
    server: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let flown = Course { noise, seconds, skip }.fly(pilot, dice, server);
    (flown.goodput, flown.limit)
}

fn pilot() -> Pilot {
    Autopilot::default().pilot()
}

/// Goodput at least 95 % of the best from 60 s after each change on, with at most 1.5 times the requests of the knee.
#[test]
fn it_is_near_the_knee_a_minute_after_every_change_whatever_the_noise() {
    let servers = [Usl::A, Usl::B, Usl::C, Usl::E].map(|server| (server, [0.01, 0.02, 0.05]));
    // The one without a peak is flat for long, so that more noise hides where it ceases to be worth it.
    for (server, noises) in servers.into_iter().chain([(Usl::D, [0.005, 0.01, 0.02])]) {
        for (noise, seed) in noises.into_iter().flat_map(|noise| (0..8).map(move |seed| (noise, seed))) {
            let (mut pilot, mut dice) = (pilot(), fastrand::Rng::with_seed(seed));
            for capacity in [1.0, 0.5, 1.0, 2.0] {
                let (best, knee) = server.best(capacity);
                let (goodput, limit) = fly(&mut pilot, &mut dice, noise, (60, 120), |n| server.goodput(capacity, n));
                assert!(goodput >= 0.95 * best, "{server:?} × {capacity}, noise {noise}, {seed}: {goodput} of {best}");
                assert!(limit <= 1.5 * knee, "{server:?} × {capacity}, noise {noise}, {seed}: {limit}, knee {knee}");
            }
        }
    }
}

#[test]
fn it_settles_at_the_beginning_of_a_plateau() {
    for seed in 0..20 {
        let (mut pilot, mut dice) = (Autopilot::default().start(500).pilot(), fastrand::Rng::with_seed(seed));
        let (goodput, limit) = fly(&mut pilot, &mut dice, 0.02, (60, 240), |n| 1_000.0 * n.min(40.0));
        assert!(goodput > 38_000.0 && (36.0..66.0).contains(&limit), "{seed}: {goodput} at {limit}");
    }
}

#[test]
fn it_never_creeps_where_the_server_does_not_depend_on_it() {
    let (mut pilot, mut dice) = (pilot(), fastrand::Rng::with_seed(1));
    let (_, limit) = fly(&mut pilot, &mut dice, 0.05, (60, 600), |_| 1_000.0);
    assert!(limit < 5.0, "{limit}");
}

#[test]
fn after_a_freeze_it_is_back_soon() {
    for seed in 0..20 {
        let (mut pilot, mut dice) = (pilot(), fastrand::Rng::with_seed(seed));
        let (best, _) = Usl::A.best(1.0);
        fly(&mut pilot, &mut dice, 0.02, (0, 60), |n| Usl::A.goodput(1.0, n));
        fly(&mut pilot, &mut dice, 0.02, (0, 5), |_| 0.0);
        let (goodput, _) = fly(&mut pilot, &mut dice, 0.02, (10, 40), |n| Usl::A.goodput(1.0, n));
        assert!(goodput > 0.95 * best, "{seed}: {goodput} of {best}");
    }
}

/// A server that collapses beyond 100 requests, met at once from far beyond.
#[test]
fn a_collapse_is_left_within_seconds() {
    for seed in 0..20 {
        let (mut pilot, mut dice) = (Autopilot::default().start(90).pilot(), fastrand::Rng::with_seed(seed));
        let collapses = |most: f64| move |n: f64| if n > most { 500.0 } else { 100.0 * n };
        fly(&mut pilot, &mut dice, 0.02, (0, 60), collapses(100.0));
        let (goodput, limit) = fly(&mut pilot, &mut dice, 0.02, (10, 60), collapses(50.0));
        assert!(goodput > 2_500.0 && limit < 55.0, "{seed}: {goodput} at {limit}");
    }
}

/// Requests fail beyond 50 under way. The windows with errors get fewer, and goodput stays near the most without.
#[test]
fn it_stays_below_the_limit_at_which_requests_fail() {
    let (mut pilot, mut dice) = (pilot(), fastrand::Rng::with_seed(3));
    let (mut done, mut failing) = (0.0, Vec::new());
    for window in 0..5 * 1_800 {
        let limit = pilot.limit();
        let mut sample = sample(100.0 * to_f64(limit) * (0.97 + 0.06 * dice.f64()), limit);
        if limit > 50 {
            sample.failed = sample.ended / 5;
            sample.succeeded -= sample.failed;
            failing.push(window);
        }
        done += sample.goodput();
        pilot.observe(&sample);
    }
    let share = done / f64::from(5 * 1_800) / 5_000.0;
    assert!(share > 0.7, "{share}");
    let late = failing.iter().filter(|window| **window > 5 * 300).count();
    assert!(failing.len() < 40 && late < 15, "{} and {late}", failing.len());
}

#[test]
fn a_limit_that_is_not_used_does_not_move() {
    let mut pilot = Autopilot::default().start(64).pilot();
    let mut dice = fastrand::Rng::with_seed(1);
    for _ in 0..1_000 {
        let mut sample = sample(1_000.0 * dice.f64(), 10);
        sample.in_flight = 10.0;
        pilot.observe(&sample);
    }
    assert!((43..=96).contains(&pilot.limit()), "{}", pilot.limit());
}

#[test]
fn it_stays_in_its_range_whatever_it_sees() {
    for seed in 0..200 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let (least, most) = (dice.usize(0..5), dice.usize(0..40));
        let autopilot = Autopilot::default().start(dice.usize(0..100)).range(least, most);
        let mut pilot = autopilot.pilot();
        for _ in 0..300 {
            let limit = pilot.limit();
            assert!(limit >= least.max(1) && limit <= autopilot.most().get(), "{limit} of {autopilot:?}");
            let ended = dice.u64(0..1_000);
            let failed = if dice.u8(0..9) == 0 { dice.u64(0..=ended) } else { 0 };
            let in_flight = to_f64(limit) * dice.f64();
            pilot.observe(&Sample { elapsed: WINDOW, succeeded: ended - failed, failed, ended, in_flight });
        }
    }
}
