//! The schedulers: shares, smoothness, order of arrival, and what none may do.

use mstcp_proto::scheduler::{by_name, check_weights, StreamView, View, NAMES};
use mstcp_proto::{LocalError, Scheduler, StreamSet};

fn views(weights: &[f64]) -> Vec<StreamView> {
    let view = |&weight| StreamView {
        weight,
        ..StreamView::default()
    };
    weights.iter().map(view).collect()
}

fn view(streams: &[StreamView], with_room: StreamSet) -> View<'_> {
    View {
        frame_bytes: 528,
        expected_bytes: 528,
        alive: StreamSet::first(streams.len()),
        with_room,
        streams,
    }
}

/// Choose for `frames` frames, every one of which is begun.
fn choose_all(scheduler: &mut dyn Scheduler, streams: &[StreamView], frames: usize) -> Vec<usize> {
    let view = view(streams, StreamSet::first(streams.len()));
    let mut choose = || {
        let stream = scheduler.choose(&view).unwrap();
        scheduler.on_begun(&view, stream);
        stream
    };
    (0..frames).map(|_| choose()).collect()
}

const WEIGHTS: [f64; 4] = [26.85, 4.47, 8.0, 0.0];

#[test]
fn stochastic_draws_follow_the_weights_within_four_sigma() {
    let total: f64 = WEIGHTS.iter().sum();
    let draws = 200_000;
    let mut scheduler = by_name("stochastic", 20_240_501).unwrap();
    let drawn = choose_all(scheduler.as_mut(), &views(&WEIGHTS), draws);
    for (stream, weight) in WEIGHTS.iter().enumerate() {
        let count = drawn.iter().filter(|&&drawn| drawn == stream).count();
        let p = weight / total;
        let sigma = (draws as f64 * p * (1.0 - p)).sqrt();
        let off = count as f64 - draws as f64 * p;
        assert!(
            off.abs() <= 4.0 * sigma,
            "{count} draws of weight {weight}: {off} off, sigma {sigma}"
        );
    }
}

#[test]
fn weighted_is_never_more_than_one_frame_off_the_share() {
    let total: f64 = WEIGHTS.iter().sum();
    let mut scheduler = by_name("weighted", 0).unwrap();
    let chosen = choose_all(scheduler.as_mut(), &views(&WEIGHTS), 20_000);
    let mut counts = [0.0; 4];
    for (place, stream) in chosen.iter().enumerate() {
        counts[*stream] += 1.0;
        for (count, weight) in counts.iter().zip(WEIGHTS) {
            let share = (place + 1) as f64 * weight / total;
            assert!((count - share).abs() <= 1.0 + 1e-6, "{count} for {share}");
        }
    }
}

#[test]
fn weighted_lets_a_stream_that_was_full_catch_up_a_few_frames_only() {
    let streams = views(&[1.0, 1.0]);
    let mut scheduler = by_name("weighted", 0).unwrap();
    let mut first_full = StreamSet::default();
    first_full.insert(1);
    for _ in 0..1000 {
        let view = view(&streams, first_full);
        assert_eq!(scheduler.choose(&view), Some(1));
        scheduler.on_begun(&view, 1);
    }
    let chosen = choose_all(scheduler.as_mut(), &streams, 1000);
    let run = chosen.iter().take_while(|&&stream| stream == 0).count();
    assert!((8..=17).contains(&run), "{run}");
    let rest = &chosen[run..];
    let second = rest.iter().filter(|&&stream| stream == 1).count();
    assert!(second.abs_diff(rest.len() / 2) <= 1);
}

/// Streams that send at their rates and have their delays: arrivals must come in the order of the frames.
#[test]
fn earliest_brings_frames_in_order_of_arrival() {
    let mut streams = views(&[30e6, 10e6, 4e6]);
    for (stream, delay_ns) in streams.iter_mut().zip([1_000_000, 25_000_000, 0]) {
        stream.least_delay_ns = delay_ns;
    }
    let mut scheduler = by_name("earliest", 0).unwrap();
    let mut last_s = 0.0;
    let mut used = StreamSet::default();
    for _ in 0..2000 {
        let chosen = scheduler
            .choose(&view(&streams, StreamSet::first(3)))
            .unwrap();
        used.insert(chosen);
        let stream = &mut streams[chosen];
        stream.backlog_bytes += 528.0;
        let arrival_s =
            stream.backlog_bytes * 8.0 / stream.weight + stream.least_delay_ns as f64 * 1e-9;
        assert!(arrival_s >= last_s);
        last_s = arrival_s;
    }
    assert_eq!(used, StreamSet::first(3));
    // The sum of the rates carries them: no stream is left idle while another has a queue.
    assert!(last_s < 2000.0 * 528.0 * 8.0 / 44e6 + 0.025);
}

#[test]
fn earliest_waits_for_a_full_stream_only_while_that_is_earlier() {
    let mut streams = views(&[10e6, 10e6]);
    streams[1].least_delay_ns = 50_000_000;
    let mut scheduler = by_name("earliest", 0).unwrap();
    let mut second = StreamSet::default();
    second.insert(1);
    assert_eq!(scheduler.choose(&view(&streams, second)), None);
    streams[0].backlog_bytes = 10e6 / 8.0 * 0.060;
    assert_eq!(scheduler.choose(&view(&streams, second)), Some(1));
}

#[test]
fn earliest_uses_a_late_stream_when_the_faster_ones_would_bring_the_queue_later_still() {
    let mut streams = views(&[10e6, 30e6, 10e6]);
    streams[2].least_delay_ns = 200_000_000;
    let mut third = StreamSet::default();
    third.insert(2);
    let mut scheduler = by_name("earliest", 0).unwrap();
    let mut choose = |expected_bytes| {
        let view = view(&streams, third);
        scheduler.choose(&View {
            expected_bytes,
            ..view
        })
    };
    // What 40 Mbit/s carry until the third's frame would be there: a frame at 10 Mbit/s, and 0.2 s.
    let carried = (40e6 / 8.0 * (528.0 * 8.0 / 10e6 + 0.2)) as u64;
    assert_eq!(choose(carried - 100), None);
    assert_eq!(choose(carried + 100), Some(2));
}

#[test]
fn redundant_copies_small_frames_alone() {
    let scheduler = by_name("redundant", 0).unwrap();
    assert!(scheduler.is_copied(1024));
    assert!(!scheduler.is_copied(65_536));
    assert!(!by_name("earliest", 0).unwrap().is_copied(1));
}

#[test]
fn no_scheduler_chooses_a_stream_without_room_or_weight() {
    let streams = views(&[1.0, 2.0, 0.0]);
    for name in NAMES {
        let mut scheduler = by_name(name, 1).unwrap();
        let mut room = StreamSet::default();
        room.insert(2);
        assert_eq!(scheduler.choose(&view(&streams, room)), None, "{name}");
        room.insert(0);
        for _ in 0..1000 {
            let chosen = scheduler.choose(&view(&streams, room));
            assert!(matches!(chosen, None | Some(0)), "{name}");
        }
    }
}

#[test]
fn an_unknown_name_is_refused_and_the_known_ones_are_named() {
    let error = by_name("fastest", 0).unwrap_err();
    assert_eq!(error, LocalError::NoSuchScheduler("fastest".into()));
    for name in NAMES {
        assert!(error.to_string().contains(name));
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
        assert!(check_weights(weights).is_err(), "{weights:?}");
    }
    assert_eq!(check_weights(&[0.0, 1.0]), Ok(()));
}

#[test]
fn sets_hold_64_streams() {
    let mut set = StreamSet::first(64);
    assert_eq!(set.iter().collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    set.remove(63);
    assert_eq!(set, StreamSet::first(63));
    assert!(StreamSet::first(0).is_empty());
}

#[test]
fn earliest_waits_for_a_stream_whose_window_doubles_where_that_brings_all_sooner() {
    let mut streams = views(&[10e6, 10e6]);
    streams[0].least_delay_ns = 10_000_000;
    streams[0].backlog_bytes = 10e6 / 8.0 * 0.060;
    streams[1].least_delay_ns = 50_000_000;
    let mut second = StreamSet::default();
    second.insert(1);
    // In 40 ms, two round trips, 10 Mbit/s double to 20, then to 40.
    let carried = (20e6 + 40e6) / 8.0 * 0.02;
    for (is_growing, expected_bytes, chosen) in [
        (false, 528.0, Some(1)),
        (true, 528.0, None),
        (true, carried * 0.9 - streams[0].backlog_bytes, None),
        (true, carried * 1.1 - streams[0].backlog_bytes, Some(1)),
    ] {
        streams[0].is_growing = is_growing;
        let view = View {
            expected_bytes: expected_bytes as u64,
            ..view(&streams, second)
        };
        let mut scheduler = by_name("earliest", 0).unwrap();
        assert_eq!(scheduler.choose(&view), chosen, "{expected_bytes} bytes");
    }
}
