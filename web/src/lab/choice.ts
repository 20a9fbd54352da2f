/** What of the results is looked at: case, protocols, seeds, flow, and one run for the map. */
import type { FlowRow, ResultsOverview, RunRow } from "./rest.ts";

export interface Choice {
  case: string;
  /** Those left out. */
  withoutProtocols: ReadonlySet<string>;
  withoutSeeds: ReadonlySet<number>;
  flow: string;
  /** Lines for each run instead of one for a protocol's seeds together. */
  isEachSeed: boolean;
  /** Number of the run whose network is shown. */
  run: number | null;
}

export const ALL_FLOWS = "";

export function firstChoice(overview: ResultsOverview): Choice {
  return {
    case: overview.runs[0]?.case ?? "",
    withoutProtocols: new Set(),
    withoutSeeds: new Set(),
    flow: ALL_FLOWS,
    isEachSeed: false,
    run: null,
  };
}

const distinct = <T>(values: readonly T[]): T[] => [...new Set(values)];

export const casesOf = (overview: ResultsOverview): string[] => distinct(overview.runs.map((run) => run.case));
export const protocolsOf = (runs: readonly RunRow[]): string[] => distinct(runs.map((run) => run.protocol));
export const seedsOf = (runs: readonly RunRow[]): number[] =>
  distinct(runs.map((run) => run.seed)).sort((a, b) => a - b);
export const flowsOf = (runs: readonly RunRow[]): string[] =>
  distinct(runs.flatMap((run) => run.flows.map((flow) => flow.flow)));

/** The names of the flows that are looked at: the chosen one, or all. */
export const namesOf = (runs: readonly RunRow[], flow: string): string[] =>
  flow === ALL_FLOWS ? flowsOf(runs) : [flow];

/** All runs of the chosen case. */
export function runsOfCase(overview: ResultsOverview, choice: Choice): RunRow[] {
  return overview.runs.filter((run) => run.case === choice.case);
}

/** The runs that were chosen, as the report takes them: of each protocol those that are valid, or all where none is. */
export function chosenRuns(overview: ResultsOverview, choice: Choice): RunRow[] {
  const runs = runsOfCase(overview, choice).filter(
    (run) => !choice.withoutProtocols.has(run.protocol) && !choice.withoutSeeds.has(run.seed),
  );
  return protocolsOf(runs).flatMap((protocol) => {
    const own = runs.filter((run) => run.protocol === protocol);
    const valid = own.filter((run) => run.valid);
    return valid.length > 0 ? valid : own;
  });
}

/** The run whose network is shown: the chosen one if it is among the chosen, else the first of MSTCP or of all. */
export function shownRun(runs: readonly RunRow[], choice: Choice): RunRow | null {
  return (
    runs.find((run) => run.number === choice.run) ?? runs.find((run) => run.protocol === "mstcp") ?? runs[0] ?? null
  );
}

export function flowOf(run: RunRow, name: string): FlowRow | undefined {
  return run.flows.find((flow) => flow.flow === name);
}

/** A flow's name in sentences and headings. */
export function flowTitle(flow: FlowRow): string {
  return `flow ${flow.flow} (${flow.src} to ${flow.dst})`;
}

export function runTitle(run: { protocol: string; seed: number }): string {
  return `${run.protocol}, seed ${run.seed}`;
}

/** A set with one more member, or one less. */
export function toggled<T>(set: ReadonlySet<T>, member: T): Set<T> {
  const other = new Set(set);
  if (!other.delete(member)) other.add(member);
  return other;
}
