//! The stochastic scheduler's draws.

use mstcp_core::{LocalError, Scheduler, Stochastic, StreamSet};

#[test]
fn draws_follow_the_weights_within_four_sigma() {
    let weights = [26.85, 4.47, 8.0, 0.0];
    let total: f64 = weights.iter().sum();
    let draws = 200_000;
    let mut scheduler = Stochastic::new(&weights, 20_240_501).unwrap();
    let mut counts = [0u32; 4];
    for _ in 0..draws {
        counts[scheduler.choose(0, StreamSet::first(4)).unwrap()] += 1;
    }
    for (count, weight) in counts.iter().zip(weights) {
        let p = weight / total;
        let sigma = (f64::from(draws) * p * (1.0 - p)).sqrt();
        let off = f64::from(*count) - f64::from(draws) * p;
        assert!(
            off.abs() <= 4.0 * sigma,
            "{count} draws of weight {weight}: {off} off, sigma {sigma}"
        );
    }
}

#[test]
fn only_streams_with_room_are_drawn_and_weight_zero_never() {
    let mut scheduler = Stochastic::new(&[1.0, 2.0, 0.0], 1).unwrap();
    let mut room = StreamSet::default();
    room.insert(2);
    assert_eq!(scheduler.choose(0, room), None);
    room.insert(0);
    for _ in 0..1000 {
        assert_eq!(scheduler.choose(0, room), Some(0));
    }
}

#[test]
fn weights_that_make_no_sense_are_refused() {
    for weights in [
        &[][..],
        &[0.0, 0.0],
        &[f64::NAN],
        &[-1.0, 2.0],
        &[f64::MAX, f64::MAX],
    ] {
        assert!(Stochastic::new(weights, 0).is_err(), "{weights:?}");
    }
    let mut scheduler = Stochastic::new(&[1.0, 2.0], 0).unwrap();
    assert_eq!(scheduler.set_weights(&[1.0]), Err(LocalError::BadWeights));
    assert_eq!(scheduler.set_weights(&[0.0, 1.0]), Ok(()));
    assert_eq!(scheduler.choose(0, StreamSet::first(2)), Some(1));
}

#[test]
fn sets_hold_64_streams() {
    let mut set = StreamSet::first(64);
    assert_eq!(set.iter().collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    set.remove(63);
    assert_eq!(set, StreamSet::first(63));
    assert!(StreamSet::first(0).is_empty());
}
