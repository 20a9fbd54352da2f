/** How rates and figures went while the page was open; bounded. */
import { Ring } from "../shared/ring.ts";
import type { FlowSummaryView, HistogramFigures, LiveDocument, StreamView } from "./rest.ts";

/** Seconds that are kept. */
const KEPT = 300;
const SPARK = 60;

/** What flowed: goodput counted where it is, else what is granted. */
export function measuredGoodput(stream: StreamView): number | null {
  if (stream.measured_bps === null || stream.measured_bps === undefined) return null;
  // Counted is the wire rate; headers are in it as they are in the wire rate that was allocated.
  return stream.wire_bps && stream.wire_bps > 0
    ? (stream.measured_bps * stream.rate_bps) / stream.wire_bps
    : stream.measured_bps;
}

/** The sum over the streams; null where one is not counted. */
export function measuredOf(flow: FlowSummaryView): number | null {
  const rates = flow.streams.map(measuredGoodput);
  return rates.every((rate) => rate !== null) && rates.length > 0
    ? rates.reduce((sum, rate) => sum + (rate ?? 0), 0)
    : null;
}

interface FlowSample {
  time_s: number;
  granted: number[];
  measured: (number | null)[];
}

export class FlowHistory {
  #samples = new Map<string, Ring<FlowSample>>();

  take(live: LiveDocument): void {
    const seen = new Set<string>();
    for (const flow of live.flows) {
      seen.add(flow.flow_id);
      const ring = this.#samples.get(flow.flow_id) ?? new Ring(KEPT);
      this.#samples.set(flow.flow_id, ring);
      ring.push({
        time_s: live.time_s,
        granted: flow.streams.map((stream) => stream.rate_bps),
        measured: flow.streams.map(measuredGoodput),
      });
    }
    for (const id of this.#samples.keys()) if (!seen.has(id)) this.#samples.delete(id);
  }

  of(flowId: string): FlowSample[] {
    return this.#samples.get(flowId)?.toArray() ?? [];
  }

  /** The rate of the last minute, counted where it is; oldest first. */
  spark(flowId: string): (number | null)[] {
    const ring = this.#samples.get(flowId);
    if (!ring) return [];
    const values: (number | null)[] = [];
    for (let index = Math.min(SPARK, ring.length) - 1; index >= 0; index -= 1) {
      const sample = ring.newest(index);
      values.push(
        sample ? sum(sample.measured.every((rate) => rate !== null) ? sample.measured : sample.granted) : null,
      );
    }
    return values;
  }
}

function sum(rates: readonly (number | null)[]): number {
  return rates.reduce<number>((total, rate) => total + (rate ?? 0), 0);
}

export interface HealthSample {
  time_s: number;
  /** Of those since the sample before; null where there were none. */
  solve_s: number | null;
  installed_p50_s: number | null;
  installed_p95_s: number | null;
  events_per_s: number | null;
  resident_bytes: number | null;
  cpu_share: number | null;
}

export class HealthHistory {
  #ring = new Ring<HealthSample>(KEPT);
  #before: LiveDocument | null = null;

  take(live: LiveDocument): void {
    const before = this.#before;
    this.#before = live;
    if (!before || live.time_s <= before.time_s || live.figures.events < before.figures.events) return;
    const span_s = live.time_s - before.time_s;
    const { figures } = live;
    const installed = difference(before.figures.request_to_installed, figures.request_to_installed);
    const solves = difference(before.figures.solve, figures.solve);
    const solved = total(solves.counts);
    this.#ring.push({
      time_s: live.time_s,
      solve_s: solved > 0 ? solves.sum_s / solved : null,
      installed_p50_s: quantile(installed, 0.5),
      installed_p95_s: quantile(installed, 0.95),
      events_per_s: (figures.events - before.figures.events) / span_s,
      resident_bytes: figures.resident_bytes,
      cpu_share:
        figures.cpu_s === null || before.figures.cpu_s === null
          ? null
          : (figures.cpu_s - before.figures.cpu_s) / span_s,
    });
  }

  samples(): HealthSample[] {
    return this.#ring.toArray();
  }
}

function total(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}

function difference(before: HistogramFigures, after: HistogramFigures): HistogramFigures {
  return {
    bounds_s: after.bounds_s,
    counts: after.counts.map((count, index) => count - (before.counts[index] ?? 0)),
    sum_s: after.sum_s - before.sum_s,
  };
}

/** A quantile, linear within its bucket as Prometheus' histogram_quantile does it; null of nothing. */
export function quantile(histogram: HistogramFigures, share: number): number | null {
  const all = total(histogram.counts);
  if (all === 0) return null;
  let below = 0;
  for (const [index, count] of histogram.counts.entries()) {
    if (below + count >= share * all && count > 0) {
      const least = index > 0 ? (histogram.bounds_s[index - 1] ?? 0) : 0;
      const most = histogram.bounds_s[index] ?? least;
      return least + ((share * all - below) / count) * (most - least);
    }
    below += count;
  }
  return histogram.bounds_s.at(-1) ?? null;
}
