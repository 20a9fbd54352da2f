/** What the page has from its server: results, their parts as they are wanted, and the current runs. */
import { signal } from "@preact/signals";
import { ApiError, getJson, setBearer } from "../shared/http.ts";
import type { ServerEvent } from "../shared/sse.ts";
import { follow } from "../shared/sse.ts";
import type { LabEvent, Live } from "./live.ts";
import { apply, begin } from "./live.ts";
import type { ResultsOverview, RunRow, Session, SweepOverview, WatchPlan } from "./rest.ts";

/** What can be opened: results of runs, or of a sweep. */
export type Document = ResultsOverview | SweepOverview;

/** Why there is nothing; empty while all is well. */
export const failure = signal("");
export const documents = signal<readonly Document[] | null>(null);
export const plan = signal<WatchPlan | null>(null);

/** The current runs; a new object after new events, around the same map. */
export const live = signal<Live | null>(null);
export const connection = signal<{ connected: boolean; reason: string }>({ connected: false, reason: "" });
/** Use the token of the address, ask what there is, and follow the current runs if there are any. */
export async function open(): Promise<void> {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (token) setBearer(token);
  try {
    const session = await getJson<Session>("/api/session");
    const indices = Array.from({ length: session.documents }, (_, index) => index);
    documents.value = await Promise.all(indices.map((index) => getJson<Document>(`/api/documents/${index}`)));
    if (session.watch) watch(session.watch);
  } catch (error) {
    failure.value = error instanceof ApiError ? error.detail : String(error);
  }
}

function watch(wanted: WatchPlan): void {
  live.value = begin(wanted);
  plan.value = wanted;
  const stop = follow("/api/events", "/api/events", {
    events: (events) => {
      const now = { ...(live.value ?? begin(wanted)) };
      for (const event of events) take(now, event);
      live.value = now;
    },
    connected: (connected, reason) => {
      // The server ends some time after the runs: that is no fault then.
      if (!connected && live.value?.ended) stop();
      else connection.value = { connected, reason };
    },
  });
}

function take(now: Live, event: ServerEvent): void {
  const parsed = JSON.parse(event.data) as LabEvent;
  apply(now, parsed);
  if (parsed.event === "run-finished") {
    ended.add(parsed.number);
    _timer ??= setTimeout(() => {
      _timer = undefined;
      void addRows([...ended]);
      ended.clear();
    }, TOGETHER_MS);
  }
}

/** Runs that end one after the other are added together, so that plots are not drawn again for each. */
const TOGETHER_MS = 300;
const ended = new Set<number>();
let _timer: ReturnType<typeof setTimeout> | undefined;

/** Add runs that have ended to the results, or replace what was there of them. */
async function addRows(numbers: readonly number[]): Promise<void> {
  try {
    const rows = await Promise.all(numbers.map((number) => getJson<RunRow>(`/api/documents/0/runs/${number}/row`)));
    for (const number of numbers) for (const part of ["flows", "links"]) parts.delete(`0/${number}/${part}`);
    const [first, ...others] = documents.value ?? [];
    if (first?.kind !== "results") return;
    const runs = [...first.runs.filter((run) => !numbers.includes(run.number)), ...rows].sort(
      (a, b) => a.number - b.number,
    );
    documents.value = [{ ...first, runs }, ...others];
  } catch (error) {
    connection.value = {
      connected: connection.value.connected,
      reason: error instanceof ApiError ? error.detail : String(error),
    };
  }
}

const MOST_PARTS = 150;
const parts = new Map<string, Promise<unknown>>();

/** A part of a run's results; asked for once while it is among those that were used last. */
export function partOf<T>(index: number, run: number, part: "flows" | "links"): Promise<T> {
  const key = `${index}/${run}/${part}`;
  const known = parts.get(key) ?? getJson<T>(`/api/documents/${index}/runs/${run}/${part}`);
  parts.delete(key);
  parts.set(key, known);
  known.catch(() => parts.delete(key));
  if (parts.size > MOST_PARTS) parts.delete(parts.keys().next().value ?? "");
  return known as Promise<T>;
}
