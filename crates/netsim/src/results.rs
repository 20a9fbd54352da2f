//! What a run found, as a document: the same seed gives the same bytes.

use serde::Serialize;

use crate::bundle::{BundleReport, MptcpReport};
use crate::flow::{Carrier, Flow};
use crate::metrics::Histogram;
use crate::requests::Transfers;
use crate::simulation::{Sample, Simulation};
use crate::tcp::Statistics;
use crate::time::{Nanos, SECOND};
use crate::traffic::Source;
use crate::wifi::medium::Statistics as AirStatistics;

/// A run's results. Rates are bit/s, times seconds, sizes bytes; what was not measured is `null`.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Results {
    /// The flows, in the order of the description.
    pub flows: Vec<FlowResults>,
    /// Both directions of each link, in the order of the description.
    pub links: Vec<LinkResults>,
    /// What the engine counted; `packets_sent = packets_delivered + packets_dropped + packets_in_flight`.
    pub counters: EngineCounters,
}

/// What the engine counted from the start of the run.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct EngineCounters {
    pub events: u64,
    pub packets_sent: u64,
    pub packets_delivered: u64,
    pub packets_dropped: u64,
    pub packets_in_flight: u64,
}

/// A flow, during the measurement unless said otherwise.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct FlowResults {
    /// Its name.
    pub flow: String,
    /// Application bytes read in order, per second.
    pub goodput_bps: f64,
    /// From write to in-order read, weighted by bytes; `null` where nothing arrived.
    pub delay_s: Option<DelayResults>,
    /// Bytes written since the start of the run.
    pub bytes_written: u64,
    /// Bytes read since the start of the run.
    pub bytes_read: u64,
    /// Bytes read that differ from those written; MSTCP's are real, the others are counted.
    pub bytes_wrong: u64,
    /// Writes that were tried.
    pub ticks: u64,
    /// Writes that found the send buffer full and were left out.
    pub ticks_skipped: u64,
    /// Of on/off: goodput over its on periods. Of a file: from its start to its last byte. `null` for others.
    pub active_goodput_bps: Option<f64>,
    /// A file, or the requests made during the measurement.
    pub transfers: Option<TransferResults>,
    /// Of a file: from the flow's start to the read of the last byte; `null` if that was not read.
    pub completion_s: Option<f64>,
    /// Of requests: from the request to the read of its answer's last byte, each counting once.
    pub fct_s: Option<CompletionResults>,
    /// Of the packets (of MSTCP: frames) with new data, the share that came before an earlier one and had to wait.
    pub out_of_order_ratio: Option<f64>,
    /// The most bytes that ever waited for earlier ones.
    pub reorder_buffer_max_bytes: Option<u64>,
    /// Its TCP connections.
    pub streams: Vec<StreamResults>,
    /// Packets that took each path, where switches split them: data and acknowledgements.
    pub split_packets: [Option<Vec<u64>>; 2],
    /// The quantiles 0, 0.01, ..., 1 of the delay; empty where nothing arrived.
    pub delay_cdf_s: Vec<f64>,
    /// The measurement in intervals; `null` without `series_interval_s`.
    pub series: Option<FlowSeries>,
    /// What MPTCP alone has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpReport>,
    /// Each write and each read, if the description asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<FlowLog>,
}

/// Writes and reads from the start of the run: the offset behind each in bytes, and its time in nanoseconds.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct FlowLog {
    /// When the application began, and when the measurement did, in nanoseconds.
    pub begun_ns: [Nanos; 2],
    /// Writes.
    pub writes: Vec<(u64, Nanos)>,
    /// Reads in order.
    pub reads: Vec<(u64, Nanos)>,
}

/// Delay of a flow.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
#[allow(missing_docs)]
pub struct DelayResults {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// What was to arrive whole.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TransferResults {
    pub started: u64,
    pub completed: u64,
}

/// Flow completion times; `quantiles` are 0, 0.01, ..., 1.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[allow(missing_docs)]
pub struct CompletionResults {
    #[serde(flatten)]
    pub delay: DelayResults,
    pub quantiles: Vec<f64>,
}

/// A TCP connection from the start of the run; what is sent is the sender's, what is received the receiver's.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
#[allow(missing_docs)]
pub struct StreamResults {
    /// Application bytes given to it.
    pub bytes: u64,
    /// Bytes acknowledged during the measurement, per second.
    pub throughput_bps: f64,
    pub data_segments_sent: u64,
    pub retransmits: u64,
    /// Those of them that were needless: the receiver got the data twice.
    pub spurious_retransmits: u64,
    /// Reductions of the window that were taken back as spurious.
    pub undone_reductions: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub duplicate_acks: u64,
    pub out_of_order_segments: u64,
    pub acks_sent: u64,
    /// At the end.
    pub cwnd_bytes: u64,
    /// At the end; `null` before the first loss.
    pub ssthresh_bytes: Option<u64>,
    /// At the end.
    pub srtt_s: Option<f64>,
    /// At the end.
    pub rto_s: f64,
}

/// A flow over time.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct FlowSeries {
    /// End of each interval, from the beginning of the measurement.
    pub time_s: Vec<f64>,
    /// Goodput in it.
    pub goodput_bps: Vec<f64>,
    /// Mean delay of what was read in it; `null` where nothing was.
    pub delay_mean_s: Vec<Option<f64>>,
    /// Of each stream, the bytes that arrived, each once, as a rate.
    pub streams_bps: Vec<Vec<f64>>,
    /// Of each stream, the congestion window at the end of each interval.
    pub cwnd_bytes: Vec<Vec<u64>>,
    /// Likewise the smoothed round-trip time; `null` before it is measured.
    pub srtt_s: Vec<Vec<Option<f64>>>,
    /// Bytes that waited at the receiver for earlier ones at the end of each interval.
    pub reorder_buffer_bytes: Vec<u64>,
}

/// One direction of a link, during the measurement; counters from the start of the run.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LinkResults {
    /// As `S0->S4`.
    pub link: String,
    /// Its rate.
    pub capacity_bps: f64,
    /// Share of the time that it transmitted.
    pub utilisation: f64,
    /// Packets taken for transmission.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that it dropped during the measurement: for want of room, by loss, or because it was down.
    pub packets_dropped: u64,
    /// Packets that the queue had no room for.
    pub dropped_queue: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Packets that were lost because the link was down.
    pub dropped_down: u64,
    /// The longest that a packet waited for the transmitter.
    pub max_wait_s: f64,
    /// What a wireless link has done on the air, from the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wifi: Option<AirStatistics>,
    /// Utilisation of each interval; `null` without `series_interval_s`.
    pub series: Option<Vec<f64>>,
}

impl Results {
    /// The document as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers, strings and lists can always be written")
    }
}

impl Simulation {
    /// What the run has found so far; complete when [`Simulation::run`] has said that the end has come.
    pub fn results(&self) -> Results {
        let counters = self.counters();
        Results {
            flows: (0..self.flows.len())
                .map(|flow| self.flow_results(flow))
                .collect(),
            links: self.link_results(),
            counters: EngineCounters {
                events: counters.events,
                packets_sent: counters.sent,
                packets_delivered: counters.delivered,
                packets_dropped: counters.dropped,
                packets_in_flight: self.in_flight() as u64,
            },
        }
    }

    fn measured(&self) -> Nanos {
        self.now.saturating_sub(self.schedule.measure_from)
    }

    fn flow_results(&self, index: usize) -> FlowResults {
        let flow = &self.flows[index];
        let delay = &flow.meter.delay;
        let report = match &flow.carrier {
            Carrier::Connections(bundle) => bundle.report(),
            Carrier::Datagrams { .. } => BundleReport::default(),
        };
        let [new, early, buffer_max] = self.disorder(flow, &report);
        FlowResults {
            flow: flow.name.clone(),
            goodput_bps: rate_bps(flow.meter.bytes, self.measured()),
            delay_s: delay_results(delay),
            bytes_written: flow.totals[0],
            bytes_read: flow.totals[1],
            bytes_wrong: report.bytes_wrong,
            ticks: flow.ticks[0],
            ticks_skipped: flow.ticks[1],
            active_goodput_bps: self.active_goodput_bps(flow),
            transfers: flow.transfers.as_ref().map(|transfers| TransferResults {
                started: transfers.started,
                completed: transfers.times.count(),
            }),
            completion_s: self.completion(flow).map(to_s),
            fct_s: match &flow.source {
                Source::Requests(_) => flow.transfers.as_deref().and_then(completions),
                _ => None,
            },
            out_of_order_ratio: new
                .zip(early)
                .filter(|&(new, _)| new > 0)
                .map(|(new, early)| early as f64 / new as f64),
            reorder_buffer_max_bytes: buffer_max,
            streams: self.stream_results(index, &report),
            split_packets: self.split_results(flow),
            delay_cdf_s: percentiles_s(delay),
            series: (self.schedule.series_interval > 0).then(|| self.flow_series(index)),
            mptcp: report.mptcp.clone(),
            log: flow.log.as_ref().map(|log| FlowLog {
                begun_ns: [
                    flow.begun.unwrap_or(flow.write_from),
                    self.schedule.measure_from,
                ],
                writes: log[0].clone(),
                reads: log[1].clone(),
            }),
        }
    }

    /// Packets or frames with new data, those of them that came early, and the most bytes that waited; of plain TCP what its receiver
    /// has seen, of datagrams nothing.
    fn disorder(&self, flow: &Flow, report: &BundleReport) -> [Option<u64>; 3] {
        let of_tcp = || match Self::ends(flow)[..] {
            [[_, receiver]] => Some(self.hosts.get(receiver).tcp.statistics()),
            _ => None,
        };
        match (report.frames, of_tcp()) {
            (None, Some(seen)) => [
                seen.data_segments_received - seen.duplicate_segments,
                seen.out_of_order_segments,
                seen.reassembly_max_bytes,
            ]
            .map(Some),
            (frames, _) => [
                frames,
                report.out_of_order_frames,
                report.reorder_buffer_max_bytes,
            ],
        }
    }

    /// How long a file took; none if it has not arrived.
    fn completion(&self, flow: &Flow) -> Option<Nanos> {
        match flow.source {
            Source::Bulk => flow.transfers.as_ref()?.times.max_ns(),
            _ => None,
        }
    }

    fn active_goodput_bps(&self, flow: &Flow) -> Option<f64> {
        let active = match flow.source {
            Source::OnOff(_) => flow.on_until(self.now) - flow.meter.on_before,
            Source::Bulk => {
                let end = self.completion(flow).map(|time| flow.write_from + time);
                let begin = flow.write_from.max(self.schedule.measure_from);
                end.unwrap_or(self.now).saturating_sub(begin)
            }
            _ => 0,
        };
        (active > 0).then(|| rate_bps(flow.meter.bytes, active))
    }

    fn ends(flow: &Flow) -> Vec<[u32; 2]> {
        match &flow.carrier {
            Carrier::Connections(bundle) => bundle.streams(),
            Carrier::Datagrams { .. } => Vec::new(),
        }
    }

    fn stream_results(&self, index: usize, report: &BundleReport) -> Vec<StreamResults> {
        let before = self.at_start.acknowledged.get(index);
        let stream = |(stream, (ends, &bytes)): (usize, ([u32; 2], &u64))| {
            let [sender, receiver]: [Statistics; 2] =
                ends.map(|endpoint| self.hosts.get(endpoint).tcp.statistics());
            StreamResults {
                bytes,
                throughput_bps: rate_bps(
                    sender.bytes_acknowledged - before.map_or(0, |streams| streams[stream]),
                    self.measured(),
                ),
                data_segments_sent: sender.data_segments_sent,
                retransmits: sender.retransmits,
                spurious_retransmits: receiver.duplicate_segments,
                undone_reductions: sender.undone_reductions,
                timeouts: sender.timeouts,
                fast_retransmits: sender.fast_retransmits,
                duplicate_acks: sender.duplicate_acks,
                out_of_order_segments: receiver.out_of_order_segments,
                acks_sent: receiver.pure_acks_sent,
                cwnd_bytes: sender.cwnd_bytes,
                ssthresh_bytes: Some(sender.ssthresh_bytes).filter(|&bytes| bytes < 1 << 62),
                srtt_s: sender.srtt.map(to_s),
                rto_s: to_s(sender.rto),
            }
        };
        Self::ends(&self.flows[index])
            .into_iter()
            .zip(&report.stream_bytes)
            .enumerate()
            .map(stream)
            .collect()
    }

    /// Data and acknowledgements by path, of a flow over one connection or of datagrams.
    fn split_results(&self, flow: &Flow) -> [Option<Vec<u64>>; 2] {
        let counts = |route| self.switches.split_counts(route).map(<[u64]>::to_vec);
        match (&flow.carrier, &Self::ends(flow)[..]) {
            (&Carrier::Datagrams { route }, _) => [counts(route), None],
            (_, &[ends]) => ends.map(|endpoint| counts(self.hosts.get(endpoint).route)),
            _ => [None, None],
        }
    }

    fn flow_series(&self, index: usize) -> FlowSeries {
        let intervals = self.flows[index].meter.series();
        let span = self.schedule.series_interval;
        let streams = Self::ends(&self.flows[index]).len();
        let stream = |stream: usize| {
            self.between(|sample| sample.arrived[index][stream])
                .map(|bytes| rate_bps(bytes, span))
                .collect()
        };
        let sampled =
            |figure: &dyn Fn(&Sample) -> u64| self.samples.iter().map(figure).collect::<Vec<_>>();
        FlowSeries {
            time_s: self
                .samples
                .iter()
                .map(|sample| to_s(sample.time - self.schedule.measure_from))
                .collect(),
            goodput_bps: intervals
                .iter()
                .map(|interval| rate_bps(interval.bytes, span))
                .collect(),
            delay_mean_s: intervals
                .iter()
                .map(|interval| {
                    let mean = interval.delay_bytes_ns as f64 / interval.bytes as f64;
                    (interval.bytes > 0).then_some(mean / SECOND as f64)
                })
                .collect(),
            streams_bps: (0..streams).map(stream).collect(),
            cwnd_bytes: (0..streams)
                .map(|stream| sampled(&|sample| sample.cwnd[index][stream]))
                .collect(),
            srtt_s: (0..streams)
                .map(|stream| {
                    let srtt = sampled(&|sample| sample.srtt[index][stream]).into_iter();
                    srtt.map(|time| (time > 0).then(|| to_s(time))).collect()
                })
                .collect(),
            reorder_buffer_bytes: sampled(&|sample| sample.waiting[index]),
        }
    }

    /// By how much a figure rose in each interval of the series.
    fn between<'a>(
        &'a self,
        figure: impl Fn(&Sample) -> u64 + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        let mut before = figure(&self.at_start);
        self.samples.iter().map(move |sample| {
            let after = figure(sample);
            after - std::mem::replace(&mut before, after)
        })
    }

    fn link_results(&self) -> Vec<LinkResults> {
        let span = self.schedule.series_interval;
        let link = |(index, link): (usize, &crate::link::Link)| {
            let counters = self.link_counters(index);
            let arc = &self.network.arcs()[index];
            let begun = self.at_start.busy.get(index).copied().unwrap_or(0);
            let dropped_before = self.at_start.dropped.get(index).copied().unwrap_or(0);
            let share = |busy: Nanos, time: Nanos| {
                if time == 0 {
                    0.0
                } else {
                    busy as f64 / time as f64
                }
            };
            LinkResults {
                link: format!(
                    "{}->{}",
                    self.network.name(arc.tail),
                    self.network.name(arc.head)
                ),
                capacity_bps: link.settings().rate_bps as f64,
                utilisation: share(self.link_busy(index) - begun, self.measured()),
                packets: counters.packets,
                bytes: counters.bytes,
                packets_dropped: counters.dropped() - dropped_before,
                dropped_queue: counters.dropped_queue,
                lost: counters.lost,
                dropped_down: counters.dropped_down,
                max_wait_s: to_s(counters.max_wait),
                wifi: self.air_statistics(index),
                series: (span > 0).then(|| {
                    self.between(|sample| sample.busy[index])
                        .map(|busy| share(busy, span))
                        .collect()
                }),
            }
        };
        self.links.iter().enumerate().map(link).collect()
    }
}

fn delay_results(delay: &Histogram) -> Option<DelayResults> {
    let quantiles = delay.quantiles_ns(&[0.5, 0.95, 0.99]);
    let &[p50, p95, p99] = &quantiles[..] else {
        return None;
    };
    Some(DelayResults {
        mean: delay.mean_ns()? / SECOND as f64,
        p50: to_s(p50),
        p95: to_s(p95),
        p99: to_s(p99),
        max: to_s(delay.max_ns()?),
    })
}

fn completions(transfers: &Transfers) -> Option<CompletionResults> {
    Some(CompletionResults {
        delay: delay_results(&transfers.times)?,
        quantiles: percentiles_s(&transfers.times),
    })
}

/// The quantiles 0, 0.01, ..., 1; empty of nothing.
fn percentiles_s(histogram: &Histogram) -> Vec<f64> {
    let percents: Vec<f64> = (0..=100)
        .map(|percent| f64::from(percent) / 100.0)
        .collect();
    let quantiles = histogram.quantiles_ns(&percents);
    quantiles.into_iter().map(to_s).collect()
}

fn to_s(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

fn rate_bps(bytes: u64, time: Nanos) -> f64 {
    if time == 0 {
        return 0.0;
    }
    bytes as f64 * 8.0 * SECOND as f64 / time as f64
}
