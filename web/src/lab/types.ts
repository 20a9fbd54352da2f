/** What the lab's server sends: experiments/web (Python) has the same names. Rates are bit/s, times seconds; null is "not measured". */

export interface Look {
  /** Which of the colours of series. */
  series: number;
}

export interface NodeView { name: string; kind: "host" | "switch"; x: number; y: number }
export interface LinkView { a: string; b: string; rate_bps: number; delay_us: number }
export interface NetworkView { name: string; nodes: NodeView[]; links: LinkView[] }

export interface DelayStatistics { mean: number; p50: number; p95: number; p99: number; max: number }

export interface FlowRow {
  flow: string;
  src: string;
  dst: string;
  group: string | null;
  requested_bps: number;
  allocated: { path: string[]; rate_bps: number | null }[];
  goodput_bps: number;
  delay_s: DelayStatistics | null;
  out_of_order_ratio: number | null;
  completion_s: number | null;
  fct_s: DelayStatistics | null;
}

/** A run without its series. */
export interface RunRow {
  number: number;
  protocol: string;
  case: string;
  seed: number;
  duration_s: number;
  valid: boolean;
  why_invalid: string[];
  earlier_attempts: string[][];
  environment: number;
  host_cpu_busy: number | null;
  flows: FlowRow[];
}

export interface EnvironmentView {
  kernel: string;
  machine: string;
  cpus: number;
  versions: Record<string, string>;
  link_backend: string | null;
  datapath: string | null;
  git_revision: string | null;
  host_load: number[];
}

export interface Overview {
  kind: "results";
  source: string;
  scenario: string;
  engine: string;
  variant: string | null;
  overrides: Record<string, unknown>;
  network: NetworkView;
  environments: EnvironmentView[];
  valid: boolean | null;
  why: string[];
  looks: Record<string, Look>;
  runs: RunRow[];
}

export interface SweepEstimate { mean: number; half_width: number | null; count: number }

export interface SweepRow {
  load: number;
  protocol: string;
  requested_bps: SweepEstimate;
  admitted_bps: SweepEstimate;
  received_bps: SweepEstimate;
  received_of_admitted: SweepEstimate | null;
  received_of_requested: SweepEstimate | null;
  delay_mean_s: SweepEstimate | null;
}

export interface SweepOverview {
  kind: "sweep";
  source: string;
  scenario: string;
  engine: string;
  conditions: Record<string, unknown>;
  seeds: number;
  looks: Record<string, Look>;
  rows: SweepRow[];
}

export interface StreamSeries { source_port: number | null; path: string[] | null; rate_bps: number[] }

export interface FlowSeries {
  flow: string;
  time_s: number[];
  goodput_bps: number[];
  delay_mean_s: (number | null)[];
  streams: StreamSeries[];
  /** Quantiles 0, 0.01, ..., 1. */
  delay_cdf_s: number[];
  completions: number[];
}

export interface LinkResult {
  link: string;
  capacity_bps: number;
  utilisation: number | null;
  packets_dropped: number | null;
  series: { time_s: number[]; utilisation: number[] } | null;
}

export interface PlannedRun { number: number; case: string; protocol: string; seed: number; kept: boolean }

export interface WatchPlan {
  engine: string;
  clock: "machine" | "virtual" | "simulated";
  folder: string;
  duration_s: number;
  warm_up_s: number;
  sample_s: number;
  links: string[];
  runs: PlannedRun[];
}

export interface Session { documents: number; watch: WatchPlan | null }

export interface ConnectedFlow {
  flow: string;
  src: string;
  dst: string;
  requested_bps: number;
  streams: { path: string[] | null; rate_bps: number | null }[];
}

interface OfRun { number: number; at_s: number }
export type LabEvent =
  | { event: "runs-begun"; planned: number; at_s: number }
  | (OfRun & { event: "run-started"; run: string; planned: number })
  | (OfRun & { event: "phase-begun"; text: string })
  | (OfRun & { event: "time-measured"; seconds: number })
  | (OfRun & { event: "flows-connected"; flows: ConnectedFlow[] })
  | (OfRun & { event: "rates-measured"; seconds: number; links: number[]; streams_bps: Record<string, number[]> })
  | (OfRun & { event: "validity-measured"; seconds: number; cpu_busy: number | null; lateness_max_us: number | null; problems: string[] })
  | (OfRun & { event: "run-repeated"; run: string; reason: string })
  | (OfRun & { event: "run-finished"; run: string; summary: string; valid: boolean })
  | (OfRun & { event: "run-broken"; run: string; reason: string })
  | { event: "job-ended"; state: "finished" | "failed" | "stopped"; text: string; at_s: number };
