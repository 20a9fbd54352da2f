/** The current runs as the server's events tell of them. Pure: the same events in the same order give the same state. */
import type { ConnectedFlow, JobEnded, RunEvent, RunsBegun, ValidityMeasured, WatchPlan } from "./rest.ts";

export type LabEvent = { at_s: number } & (RunsBegun | JobEnded | ({ number: number } & RunEvent));

export type RunState = "waiting" | "running" | "valid" | "invalid" | "failed";

/** One run. `samples` are of its measurement so far, the newest last; those of a run that is over are dropped. */
export interface LiveRun {
  number: number;
  case: string;
  protocol: string;
  seed: number;
  state: RunState;
  /** Whether its result was there before. */
  kept: boolean;
  phase: string;
  seconds: number;
  began_s: number | null;
  ended_s: number | null;
  /** Why earlier attempts did not count. */
  repeated: string[];
  text: string;
  flows: ConnectedFlow[];
  samples: Sample[];
  validity: ValidityMeasured | null;
}

interface Sample {
  seconds: number;
  links: number[];
  streams_bps: Record<string, number[]>;
}

export interface Live {
  runs: Map<number, LiveRun>;
  /** Whether several runs are made at once. */
  together: boolean;
  ended: JobEnded | null;
}

/** As many values of samples as the server keeps. */
const VALUES_KEPT = 400_000;

export function begin(plan: WatchPlan): Live {
  const runs = plan.runs.map(
    (run): LiveRun => ({
      ...run,
      state: run.kept ? "valid" : "waiting",
      phase: "",
      seconds: 0,
      began_s: null,
      ended_s: null,
      repeated: [],
      text: "",
      flows: [],
      samples: [],
      validity: null,
    }),
  );
  return { runs: new Map(runs.map((run) => [run.number, run])), together: false, ended: null };
}

/** Apply one event to `live`. */
export function apply(live: Live, event: LabEvent): void {
  if (event.event === "runs-begun") {
    live.together = true;
    return;
  }
  if (event.event === "job-ended") {
    live.ended = event;
    return;
  }
  const known = live.runs.get(event.number);
  if (!known) return;
  // A new object: components look again at those that have changed alone.
  const run = { ...known };
  live.runs.set(event.number, run);
  applyToRun(run, event);
}

function applyToRun(run: LiveRun, event: Extract<LabEvent, { number: number }>): void {
  switch (event.event) {
    case "run-started":
      Object.assign(run, { state: "running", phase: "setting up", began_s: event.at_s, seconds: 0 });
      forget(run);
      return;
    case "phase-begun":
      run.phase = event.text;
      return;
    case "time-measured":
      run.phase = "measuring";
      run.seconds = event.seconds;
      return;
    case "flows-connected":
      run.flows = event.flows;
      return;
    case "rates-measured":
      addSample(run, event);
      return;
    case "validity-measured":
      run.validity = event;
      return;
    case "run-repeated":
      run.repeated = [...run.repeated, event.reason];
      Object.assign(run, { phase: "setting up again", seconds: 0 });
      forget(run);
      return;
    case "run-finished":
      end(run, event.valid ? "valid" : "invalid", event.summary, event.at_s);
      return;
    case "run-broken":
      end(run, "failed", event.reason, event.at_s);
  }
}

function addSample(run: LiveRun, { seconds, links, streams_bps }: Sample): void {
  run.samples.push({ seconds, links, streams_bps });
  const values = links.length + Object.values(streams_bps).reduce((sum, rates) => sum + rates.length, 0);
  const most = Math.max(60, Math.min(2400, Math.floor(VALUES_KEPT / Math.max(1, values))));
  if (run.samples.length > most) run.samples.splice(0, run.samples.length - most);
}

function forget(run: LiveRun): void {
  run.flows = [];
  run.samples = [];
  run.validity = null;
}

function end(run: LiveRun, state: RunState, text: string, at_s: number): void {
  Object.assign(run, { state, text, ended_s: at_s, phase: "" });
  forget(run);
}

/** How many runs are in each state. */
export function counts(live: Live): Record<RunState, number> {
  const byState: Record<RunState, number> = { waiting: 0, running: 0, valid: 0, invalid: 0, failed: 0 };
  for (const run of live.runs.values()) byState[run.state] += 1;
  return byState;
}

/** Seconds until all is over, as the runs that have ended took; null before the first has. */
export function timeLeft(live: Live, now_s: number): number | null {
  const runs = [...live.runs.values()];
  const took = runs.flatMap((run) => (run.began_s === null || run.ended_s === null ? [] : [run.ended_s - run.began_s]));
  const running = runs.filter((run) => run.state === "running");
  if (took.length === 0 || live.ended) return null;
  const mean = took.reduce((sum, each) => sum + each, 0) / took.length;
  const begun = running.reduce((sum, run) => sum + Math.min(mean, now_s - (run.began_s ?? now_s)), 0);
  const waiting = runs.filter((run) => run.state === "waiting").length;
  return Math.max(0, ((waiting + running.length) * mean - begun) / Math.max(1, running.length));
}
