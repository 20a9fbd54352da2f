//! Links by hand: what arrives when, and what is dropped.

use super::*;
use crate::queue::{EventQueue, EventTarget};
use crate::time::MILLISECOND;

const SETTINGS: LinkSettings = LinkSettings {
    rate_bps: 10_000_000,
    delay: MILLISECOND,
    queue_packets: None,
    queue_bytes: None,
    loss: 0.0,
    jitter: 0,
};

fn link(settings: LinkSettings) -> Link {
    Link::new(
        settings,
        SplitMix64::seed_from_u64(1),
        SplitMix64::seed_from_u64(2),
    )
}

#[test]
fn serialises_then_delays() {
    let mut link = link(SETTINGS);
    let arrival = |time| SendOutcome::Arrives(time + MILLISECOND);
    assert_eq!(link.transmit(0, 590), arrival(472_000));
    assert_eq!(link.transmit(0, 590), arrival(944_000));
    assert_eq!(link.busy_time(472_000), 472_000);
    assert_eq!(link.transmit(2_000_000, 54), arrival(2_043_200));
    assert_eq!(link.busy_time(2_000_000), 944_000);
    assert_eq!(link.busy_time(3_000_000), 987_200);
}

#[test]
fn fractions_of_a_nanosecond_are_not_lost() {
    let mut link = link(LinkSettings {
        rate_bps: 3_000_000_000,
        delay: 0,
        ..SETTINGS
    });
    let last = (0..3_000).map(|_| link.transmit(0, 590)).last();
    assert_eq!(last, Some(SendOutcome::Arrives(590 * 8 * 1_000)));
}

#[test]
fn a_full_queue_drops_and_drains() {
    let mut link = link(LinkSettings {
        queue_packets: Some(2),
        ..SETTINGS
    });
    let verdicts: Vec<bool> = (0..4)
        .map(|_| matches!(link.transmit(0, 590), SendOutcome::Arrives(_)))
        .collect();
    assert_eq!(verdicts, [true, true, true, false]);
    let full = SendOutcome::Dropped(DropReason::QueueFull);
    assert_eq!(link.transmit(472_000, 590), full);
    assert!(matches!(
        link.transmit(472_001, 590),
        SendOutcome::Arrives(_)
    ));
    assert_eq!(link.transmit(472_001, 590), full);
    assert_eq!(link.counters().dropped_queue, 3);
}

#[test]
fn a_queue_can_be_bounded_in_bytes() {
    let mut link = link(LinkSettings {
        queue_bytes: Some(1_000),
        ..SETTINGS
    });
    assert!(matches!(link.transmit(0, 590), SendOutcome::Arrives(_)));
    assert!(matches!(link.transmit(0, 590), SendOutcome::Arrives(_)));
    assert_eq!(
        link.transmit(0, 590),
        SendOutcome::Dropped(DropReason::QueueFull)
    );
    assert!(matches!(link.transmit(0, 410), SendOutcome::Arrives(_)));
}

#[test]
fn jitter_delays_and_never_reorders() {
    let mut link = link(LinkSettings {
        jitter: 5 * MILLISECOND,
        ..SETTINGS
    });
    let mut last = 0;
    for k in 1..1_000u64 {
        let SendOutcome::Arrives(arrival) = link.transmit(0, 590) else {
            panic!("dropped")
        };
        let earliest = k * 472_000 + MILLISECOND;
        assert!(arrival >= earliest.max(last) && arrival <= earliest + 5 * MILLISECOND);
        last = arrival;
    }
}

#[test]
fn loss_has_its_probability() {
    let mut link = link(LinkSettings {
        loss: 0.1,
        ..SETTINGS
    });
    let lost = (0..100_000)
        .filter(|_| link.transmit(0, 590) == SendOutcome::Dropped(DropReason::Lost))
        .count();
    assert!((9_700..10_300).contains(&lost), "{lost}");
}

/// Queue packets of 590 bytes at time 0; the arrivals that the link has for them.
fn queue_packets(link: &mut Link, queue: &mut EventQueue, count: u32) -> Vec<Nanos> {
    let mut arrivals = Vec::new();
    for packet in 0..count {
        if let SendOutcome::Arrives(time) = link.transmit(0, 590) {
            let arrival = queue.reserve(time, EventTarget::Link(0));
            arrivals.push(time);
            link.launch(InFlight {
                arrival,
                packet,
                cursor: 0,
                bytes: 590,
            });
        }
    }
    arrivals
}

fn arrivals(link: &mut Link) -> Vec<Nanos> {
    (0..link.flight.len())
        .map(|index| link.flight.arrival_mut(index).time())
        .collect()
}

fn becomes(settings: LinkSettings) -> LinkChange {
    LinkChange {
        settings,
        loss: SplitMix64::seed_from_u64(3),
        jitter: SplitMix64::seed_from_u64(4),
    }
}

#[test]
fn what_waits_leaves_at_the_new_rate() {
    let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
    link.expect_changes();
    assert_eq!(
        queue_packets(&mut link, &mut queue, 4)[3],
        4 * 472_000 + MILLISECOND
    );
    let slower = becomes(LinkSettings {
        rate_bps: 5_000_000,
        ..SETTINGS
    });
    // The second is under way; two wait, and take twice as long each.
    let due = link.change(500_000, &slower, |time| {
        queue.reserve(time, EventTarget::Link(0))
    });
    assert_eq!(due, None);
    let expected = [472_000, 944_000, 1_888_000, 2_832_000].map(|time| time + MILLISECOND);
    assert_eq!(arrivals(&mut link), expected);
    assert_eq!(link.busy_time(3_000_000), 2_832_000);
    assert_eq!(
        link.transmit(600_000, 590),
        SendOutcome::Arrives(3_776_000 + MILLISECOND)
    );
}

#[test]
fn nothing_is_overtaken_when_the_delay_falls() {
    let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
    link.expect_changes();
    queue_packets(&mut link, &mut queue, 2);
    let nearer = becomes(LinkSettings {
        delay: 0,
        ..SETTINGS
    });
    link.change(950_000, &nearer, |time| {
        queue.reserve(time, EventTarget::Link(0))
    });
    let last = 944_000 + MILLISECOND;
    assert_eq!(arrivals(&mut link)[1], last);
    assert_eq!(link.transmit(1_000_000, 590), SendOutcome::Arrives(last));
    assert_eq!(
        link.transmit(3_000_000, 590),
        SendOutcome::Arrives(3_472_000)
    );
}

#[test]
fn packets_that_the_wire_loses_keep_their_place_in_the_queue() {
    let (mut link, mut queue) = (
        link(LinkSettings {
            loss: 0.5,
            ..SETTINGS
        }),
        EventQueue::default(),
    );
    link.expect_changes();
    let before = queue_packets(&mut link, &mut queue, 40);
    assert!((5..35).contains(&before.len()));
    let same = becomes(LinkSettings {
        loss: 0.5,
        ..SETTINGS
    });
    link.change(1, &same, |time| queue.reserve(time, EventTarget::Link(0)));
    assert_eq!(arrivals(&mut link), before);
    assert_eq!(link.busy_time(u64::MAX), 40 * 472_000);
}

#[test]
fn a_link_that_goes_down_loses_what_it_holds() {
    let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
    queue_packets(&mut link, &mut queue, 3);
    let (first, next) = link.arrive(link.flight.first().arrival).unwrap();
    assert_eq!(first.packet, 0);
    assert_eq!(link.go_down(500_000).len(), 2);
    assert!(link.arrive(next.unwrap()).is_none());
    assert_eq!(
        link.transmit(600_000, 590),
        SendOutcome::Dropped(DropReason::Down)
    );
    link.come_up();
    assert_eq!(
        link.transmit(700_000, 590),
        SendOutcome::Arrives(700_000 + 472_000 + MILLISECOND)
    );
    assert_eq!(link.counters().dropped_down, 3);
}

#[test]
fn an_arrival_needs_one_cache_line_and_a_transmission_two() {
    let link = link(SETTINGS);
    let offset = |field: usize| field - std::ptr::addr_of!(link) as usize;
    let after = offset(std::ptr::addr_of!(link.flight) as usize) + std::mem::size_of::<Flight>();
    assert!(after <= ARRIVAL_BYTES);
    assert_eq!(
        offset(std::ptr::addr_of!(link.counters) as usize),
        TRANSMISSION_BYTES
    );
}
