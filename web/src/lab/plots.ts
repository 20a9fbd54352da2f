/** The plots of the chosen runs, as data. */
import { bitrate, duration } from "../shared/format.ts";
import { ALL_FLOWS, flowOf, flowTitle, namesOf, protocolsOf } from "./choice.ts";
import type { DotPlot, DotRow } from "./dot_plot.ts";
import type { Axis, LinePlot, PlotLine } from "./line_plot.ts";
import type { DelayStatistics, FlowPart, FlowRow, LinkResult, ProtocolLook, RunRow } from "./rest.ts";
import { meanSeries, pooledQuantiles, weightedSeries } from "./statistics.ts";

export const TIME: Axis = { label: "time in s", column: "time_s", scale: 1 };
export const GOODPUT: Axis = { label: "goodput in Mbit/s", column: "goodput_bps", scale: 1e6 };
export const RATE: Axis = { label: "sent in Mbit/s", column: "rate_bps", scale: 1e6 };
export const DELAY: Axis = { label: "delay in ms", column: "delay_s", scale: 1e-3 };
const SHARE: Axis = { label: "share of the bytes in %", column: "quantile", scale: 0.01 };
const UTILISATION: Axis = { label: "utilisation in %", column: "utilisation", scale: 0.01 };
const COMPLETION: Axis = { label: "completion time in ms", column: "completion_s", scale: 1e-3 };

/** More rows than this cannot be distinguished: a flow has to be chosen. */
export const MOST_ROWS = 60;

export type DelayKind = keyof DelayStatistics;
export const DELAY_KINDS: Record<DelayKind, string> = {
  mean: "mean",
  p50: "median",
  p95: "95th percentile",
  p99: "99th percentile",
  max: "largest",
};

/** Of a run, its series by flow. */
type SeriesOf = ReadonlyMap<number, readonly FlowPart[]>;

interface Context {
  case: string;
  runs: readonly RunRow[];
  looks: Record<string, ProtocolLook>;
  flow: string;
}

export function goodputDots(context: Context): DotPlot {
  const rows = dotRowsOf(
    context,
    (flow) => flow.goodput_bps,
    (flow) => flow.requested_bps,
  );
  return {
    name: `goodput-${context.case}`,
    title: `Goodput, case ${context.case}`,
    x: GOODPUT,
    rows,
    format: bitrate,
    targetName: "requested",
  };
}

export function delayDots(context: Context, kind: DelayKind): DotPlot {
  const rows = dotRowsOf(
    context,
    (flow) => flow.delay_s?.[kind] ?? null,
    () => null,
  );
  const x = { ...DELAY, label: `${DELAY_KINDS[kind]} delay in ms`, column: `delay_${kind}_s` };
  return {
    name: `delay-${kind}-${context.case}`,
    title: `Delay (${DELAY_KINDS[kind]}), case ${context.case}`,
    x,
    rows,
    format: duration,
    targetName: "",
  };
}

function dotRowsOf(
  context: Context,
  value: (flow: FlowRow) => number | null,
  target: (flow: FlowRow) => number | null,
): DotRow[] {
  return namesOf(context.runs, context.flow).flatMap((name) =>
    protocolsOf(context.runs).flatMap((protocol) => {
      const own = context.runs.filter((run) => run.protocol === protocol);
      const first = own.map((run) => flowOf(run, name)).find((flow) => flow !== undefined);
      if (!first) return [];
      const points = own.flatMap((run) => {
        const flow = flowOf(run, name);
        const measured = flow ? value(flow) : null;
        return measured === null ? [] : [{ seed: run.seed, value: measured }];
      });
      return [
        {
          group: flowTitle(first),
          label: protocol,
          series: seriesOf(context.looks, protocol),
          points,
          target: target(first),
        },
      ];
    }),
  );
}

export function seriesOf(looks: Record<string, ProtocolLook>, protocol: string): number {
  return looks[protocol]?.series ?? 0;
}

interface OverTime {
  context: Context;
  series: SeriesOf;
  isEachSeed: boolean;
}

/** Goodput over time: of one flow, or of all together. */
export function goodputLines(from: OverTime): LinePlot {
  const of = flowWords(from.context);
  const lines = linesOverTime(from, (flows) => sumOf(flows.map((flow) => flow.goodput_bps)));
  return {
    name: fileName("goodput-time", from.context),
    title: `Goodput over time, ${of}`,
    x: TIME,
    y: GOODPUT,
    lines,
  };
}

/** Delay over time of one flow, or of all together by the bytes that arrived. */
export function delayLines(from: OverTime): LinePlot {
  const lines = linesOverTime(from, (flows) =>
    weightedSeries(flows.map((flow) => ({ values: flow.delay_mean_s, weights: flow.goodput_bps }))),
  );
  return {
    name: fileName("delay-time", from.context),
    title: `Mean delay over time, ${flowWords(from.context)}`,
    x: TIME,
    y: { ...DELAY, label: "mean delay in ms", column: "delay_mean_s" },
    lines,
  };
}

export function delayDistribution(from: OverTime): LinePlot {
  const lines = distributionLines(
    from,
    (flow) => flow.delay_cdf_s,
    (flow) => flow.goodput_bps.reduce((sum, rate) => sum + rate, 0),
  );
  return {
    name: fileName("delay-distribution", from.context),
    title: `Distribution of the delay, ${flowWords(from.context)}`,
    x: DELAY,
    y: { ...SHARE, label: "share of the bytes in %, delayed by at most this" },
    lines,
    atLeast: 1,
  };
}

export function completionDistribution(from: OverTime): LinePlot {
  const lines = distributionLines(
    from,
    (flow) => flow.completions,
    () => 1,
  );
  return {
    name: fileName("completion", from.context),
    title: `Completion times, ${flowWords(from.context)}`,
    x: COMPLETION,
    y: { ...SHARE, label: "share of the transfers in %, done within this" },
    lines,
    atLeast: 1,
  };
}

function flowWords(context: Context): string {
  const flow = context.runs[0] ? flowOf(context.runs[0], context.flow) : undefined;
  return `${flow ? flowTitle(flow) : "all flows"}, case ${context.case}`;
}

function fileName(what: string, context: Context): string {
  const words = [what, context.case, context.flow === ALL_FLOWS ? "all" : `flow-${context.flow}`];
  return words.join("-").replace(/[^A-Za-z0-9._-]+/g, "_");
}

function linesOverTime(
  { context, series, isEachSeed }: OverTime,
  value: (flows: readonly FlowPart[]) => (number | null)[],
): PlotLine[] {
  return overProtocols(context, series, isEachSeed, (runs, label, look) => {
    const each = runs.map((flows) => ({ x: flows[0]?.time_s ?? [], y: value(flows) }));
    const longest = each.reduce((most, next) => (next.x.length > most.x.length ? next : most));
    return { label, series: look, x: longest.x, y: meanSeries(each.map((run) => run.y)) };
  });
}

function distributionLines(
  { context, series, isEachSeed }: OverTime,
  quantiles: (flow: FlowPart) => readonly number[],
  weight: (flow: FlowPart) => number,
): PlotLine[] {
  return overProtocols(context, series, isEachSeed, (runs, label, look) => {
    const x = pooledQuantiles(
      runs
        .flat()
        .map((flow) => ({ quantiles: quantiles(flow), weight: weight(flow) }))
        .filter((part) => part.quantiles.length > 0),
    );
    return { label, series: look, x, y: x.map((_, index) => index / Math.max(1, x.length - 1)) };
  }).filter((each) => each.x.length > 0);
}

/** A line for each protocol (means over its seeds), or for each run. */
function overProtocols(
  context: Context,
  series: SeriesOf,
  isEachSeed: boolean,
  make: (runs: readonly FlowPart[][], label: string, look: number) => PlotLine,
): PlotLine[] {
  return protocolsOf(context.runs)
    .flatMap((protocol) => {
      const known = context.runs.filter((run) => run.protocol === protocol && series.has(run.number));
      const look = seriesOf(context.looks, protocol);
      const flows = (run: RunRow): FlowPart[] =>
        (series.get(run.number) ?? []).filter(
          (flow) => (context.flow === ALL_FLOWS || flow.flow === context.flow) && flow.time_s.length > 0,
        );
      if (isEachSeed) return known.map((run) => make([flows(run)], `${protocol}, seed ${run.seed}`, look));
      return known.length > 0
        ? [make(known.map(flows), known.length > 1 ? `${protocol}, ${known.length} seeds` : protocol, look)]
        : [];
    })
    .filter((each) => each.x.length > 0);
}

function sumOf(series: readonly (readonly number[])[]): (number | null)[] {
  const length = Math.max(0, ...series.map((each) => each.length));
  return Array.from({ length }, (_, index) => series.reduce((sum, each) => sum + (each[index] ?? 0), 0));
}

/** What each stream of a run has sent; of one flow, or of all. */
export function streamLines(run: RunRow, series: readonly FlowPart[], flow: string): LinePlot {
  const shown = series.filter((each) => flow === ALL_FLOWS || each.flow === flow);
  let count = 0;
  const lines = shown.flatMap((each) =>
    each.streams.map((stream, index) => ({
      label: `${shown.length > 1 ? `flow ${each.flow}: ` : ""}${stream.path?.join(" → ") ?? `stream ${index + 1}`}`,
      series: count++,
      x: each.time_s,
      y: stream.rate_bps,
    })),
  );
  return {
    name: `streams-${run.case}-${run.protocol}-s${run.seed}`,
    title: `Rates of the streams, case ${run.case}, ${run.protocol}, seed ${run.seed}`,
    x: TIME,
    y: RATE,
    lines,
  };
}

/** How full the directions of one link were over time. */
export function linkLines(run: RunRow, links: readonly LinkResult[], ends: readonly [string, string]): LinePlot {
  const names = [`${ends[0]}->${ends[1]}`, `${ends[1]}->${ends[0]}`];
  const lines = names.flatMap((name, index) => {
    const link = links.find((each) => each.link === name);
    return link?.series
      ? [{ label: name.replace("->", " to "), series: index, x: link.series.time_s, y: link.series.utilisation }]
      : [];
  });
  return {
    name: `link-${ends.join("-")}-${run.case}-${run.protocol}-s${run.seed}`,
    title: `Utilisation of ${ends.join("-")}, case ${run.case}, ${run.protocol}, seed ${run.seed}`,
    x: TIME,
    y: UTILISATION,
    lines,
    atLeast: 1,
  };
}
