//! BBR as ns-3 3.37 has it: where it departs from the draft (`congestion/ns3_bbr.rs`).

use netsim::tcp::config::CongestionAlgorithm;
use netsim::tcp::congestion::bbr::State;
use netsim::tcp::congestion::{CongestionControl, Delivery, Window};
use netsim::tcp::delivery_rate::{RateSample, RateSampler, SampleRule};
use netsim::tcp::ns3::Ns3Bbr;
use netsim::tcp::{Config, Endpoint, Profile};
use netsim::time::{Nanos, MILLISECOND, SECOND};

const MSS: u64 = 1000;
const RTT: Nanos = 40 * MILLISECOND;
/// What 8 Mbit/s carry in a round trip.
const BDP: u64 = 40 * MSS;

/// A path of 8 Mbit/s and 40 ms in rounds: what ns-3's BBR makes of it.
struct Path {
    bbr: Ns3Bbr,
    window: Window,
    delivery: Delivery,
}

impl Path {
    fn new() -> Self {
        let mut path = Self {
            bbr: Ns3Bbr::new(7),
            window: Window {
                cwnd: 10 * MSS,
                ssthresh: u64::MAX,
                mss: MSS as u32,
            },
            delivery: Delivery {
                now: RTT,
                bytes: 0,
                rtt: None,
                srtt: Some(RTT),
                pipe: 0,
                prior_pipe: 0,
                lost: 0,
                total: 0,
                sample: None,
                recovering: false,
            },
        };
        path.bbr.on_open(RTT, &mut path.window, Some(RTT));
        path
    }

    /// An ACK a round trip later that tells of `bytes` delivered since, with `pipe` left and losses changed by `lost`.
    fn ack(&mut self, bytes: u64, pipe: u64, lost: u64) {
        let sample = RateSample {
            delivered: bytes,
            interval: RTT,
            prior_delivered: self.delivery.total,
            app_limited: false,
        };
        self.delivery.now += RTT;
        self.delivery.bytes = bytes;
        self.delivery.pipe = pipe;
        self.delivery.prior_pipe = pipe + bytes;
        self.delivery.lost = lost;
        self.delivery.total += bytes;
        self.delivery.sample = Some(sample);
        self.bbr.on_delivery(&mut self.window, &self.delivery);
    }

    fn filled() -> Self {
        let mut path = Self::new();
        for _ in 0..8 {
            path.ack(BDP, BDP, 0);
        }
        assert_eq!(path.bbr.state(), State::ProbeBw);
        path
    }
}

#[test]
fn the_handshake_in_whole_milliseconds_sets_the_first_rate() {
    let mut path = Path::new();
    let rate = |path: &Path| path.bbr.pacing_rate(&path.window, None).expect("a rate");
    assert!((rate(&path) - 2.89 * 10e3 / RTT as f64).abs() < 1e-9);
    // A second opening, as of a repeated SYN-ACK, changes nothing; a fraction of a millisecond counts as one.
    path.bbr.on_open(RTT, &mut path.window, Some(RTT / 2));
    assert!((rate(&path) - 2.89 * 10e3 / RTT as f64).abs() < 1e-9);
    let mut near = Ns3Bbr::new(1);
    near.on_open(0, &mut path.window, Some(MILLISECOND / 10));
    let first = near.pacing_rate(&path.window, None).expect("a rate");
    assert!((first - 2.89 * 10e3 / MILLISECOND as f64).abs() < 1e-9);
}

#[test]
fn a_recovery_ends_at_the_product_that_drain_began_with_whatever_the_window_was() {
    let mut path = Path::filled();
    // Three segments beyond the product.
    assert_eq!(path.window.ssthresh, BDP + 3 * MSS);
    let before = path.window.cwnd;
    assert!(before > 2 * BDP);
    path.bbr.on_recovery(&mut path.window, BDP, MSS);
    assert_eq!(path.window.cwnd, BDP + MSS);
    let ssthresh = path.window.ssthresh;
    path.bbr.on_reduction(&mut path.window, ssthresh);
    assert_eq!(path.window.cwnd, ssthresh);
}

#[test]
fn a_recovery_before_drain_leaves_a_window_without_bound() {
    let mut path = Path::new();
    path.ack(10 * MSS, 20 * MSS, 0);
    path.bbr.on_recovery(&mut path.window, 20 * MSS, MSS);
    let ssthresh = path.window.ssthresh;
    path.bbr.on_reduction(&mut path.window, ssthresh);
    assert_eq!(path.window.cwnd, u64::from(u32::MAX));
    // Once the pipe is taken for full, the next ACK wraps the sum: four segments are left.
    for _ in 0..8 {
        path.ack(10 * MSS, 200 * MSS, 0);
        if path.window.cwnd < 20 * MSS {
            break;
        }
    }
    assert_eq!(path.window.cwnd, 10 * MSS - 1);
}

#[test]
fn in_a_recovery_losses_that_get_fewer_shrink_the_window_as_new_ones_do() {
    let mut path = Path::filled();
    path.bbr.on_recovery(&mut path.window, BDP, MSS);
    // A round later nothing is conserved; the change of the losses is taken off, the delivery added.
    let before = path.window.cwnd;
    path.ack(MSS, 10 * MSS, 4 * MSS);
    assert_eq!(path.window.cwnd, before - 4 * MSS + MSS);
    // Outside a recovery it is not.
    let ssthresh = path.window.ssthresh;
    path.bbr.on_reduction(&mut path.window, ssthresh);
    path.ack(MSS, 10 * MSS, 4 * MSS);
    assert_eq!(path.window.cwnd, ssthresh + MSS);
}

#[test]
fn a_timeout_leaves_four_segments_and_no_memory_of_the_window() {
    let mut path = Path::filled();
    path.bbr.on_loss(path.delivery.now, &mut path.window, BDP);
    path.bbr.on_timeout(&mut path.window);
    assert_eq!(path.window.cwnd, MSS);
    path.ack(MSS, 0, BDP);
    assert_eq!(path.window.cwnd, 4 * MSS);
}

#[test]
fn acks_that_come_together_widen_the_window() {
    let mut path = Path::filled();
    // Two products, three quanta, and the greatest of the ACKs, of which each is an epoch.
    let probing = path.bbr.pacing_rate(&path.window, None).expect("a rate") > 1.1e-3;
    let quanta = if probing { 5 } else { 3 };
    for _ in 0..5 {
        path.ack(BDP, BDP, 0);
    }
    assert!(path.window.cwnd >= 2 * BDP + quanta * MSS);
    assert!(path.window.cwnd <= 3 * BDP + 5 * MSS);
    assert!(path.window.cwnd > 2 * BDP + 5 * MSS);
}

#[test]
fn a_sample_of_ns3_outlives_its_ack_and_times_acks_from_the_segment_before() {
    let mut sampler = RateSampler::new(SampleRule::Ns3);
    let first = sampler.stamp(SECOND, true);
    sampler.on_delivered(SECOND + 100 * MILLISECOND, 1000, &first);
    // The time of the first ACK runs from the beginning of the simulation.
    let sample = sampler.sample(None).expect("a sample");
    assert_eq!(
        (sample.delivered, sample.interval),
        (1000, SECOND + 100 * MILLISECOND)
    );
    let second = sampler.stamp(SECOND + 100 * MILLISECOND, false);
    let third = sampler.stamp(SECOND + 110 * MILLISECOND, false);
    sampler.on_delivered(SECOND + 200 * MILLISECOND, 1000, &second);
    let sample = sampler.sample(None).expect("a sample");
    // From the sender's last delivery as the first left, not as the second did.
    assert_eq!(
        (sample.delivered, sample.interval),
        (1000, 200 * MILLISECOND)
    );
    // The third left with nothing delivered in between: the times are the second's, the bytes both's.
    sampler.on_delivered(SECOND + 210 * MILLISECOND, 1000, &third);
    let sample = sampler.sample(None).expect("a sample");
    assert_eq!(
        (sample.delivered, sample.interval),
        (2000, 200 * MILLISECOND)
    );
    // Nothing new is delivered, and there is a sample still.
    assert_eq!(sampler.sample(None), Some(sample));
}

#[test]
fn a_sample_shorter_than_the_least_round_trip_is_void_and_the_rate_stays() {
    let mut sampler = RateSampler::new(SampleRule::Ns3);
    let stamp = sampler.stamp(SECOND, true);
    sampler.on_delivered(SECOND + 100 * MILLISECOND, 1000, &stamp);
    let before = sampler.sample(None);
    let stamp = sampler.stamp(SECOND + 100 * MILLISECOND, false);
    sampler.on_delivered(SECOND + 150 * MILLISECOND, 1000, &stamp);
    let after = sampler.sample(Some(SECOND)).expect("the rate before");
    let rate = |sample: Option<RateSample>| sample.map(|one| (one.delivered, one.interval));
    assert_eq!(rate(Some(after)), rate(before));
    assert_eq!(after.prior_delivered, 1000);
}

/// Segments that leave at one time.
fn burst(endpoint: &mut Endpoint, now: Nanos) -> Vec<netsim::tcp::segment::Segment> {
    std::iter::from_fn(|| endpoint.poll_transmit(now)).collect()
}

#[test]
fn the_initial_window_leaves_at_once_and_a_gap_follows() {
    let config = Config {
        congestion: CongestionAlgorithm::Ns3Bbr { seed: 1 },
        ..Config::profile(Profile::Ns3)
    };
    let (mut client, mut server) = (Endpoint::client(&config, 0), Endpoint::server(&config));
    for segment in burst(&mut client, 0) {
        server.on_segment(RTT / 2, &segment);
    }
    for segment in burst(&mut server, RTT / 2) {
        client.on_segment(RTT, &segment);
    }
    client.write(RTT, 50 * 536);
    let first = burst(&mut client, RTT);
    assert_eq!(first.iter().filter(|one| one.payload_bytes > 0).count(), 10);
    for segment in first {
        server.on_segment(3 * RTT / 2, &segment);
    }
    let acks = burst(&mut server, 3 * RTT / 2);
    assert!(acks.len() > 2);
    for ack in acks {
        client.on_segment(2 * RTT, &ack);
    }
    // The window has room for more, the rate for one.
    assert_eq!(burst(&mut client, 2 * RTT).len(), 1);
    assert!(client.next_timer().expect("a timer") < 3 * RTT);
}
