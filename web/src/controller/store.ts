/** What the page knows of the controller, and how it keeps it up. */
import { batch, computed, signal } from "@preact/signals";
import { ApiError, bearer, getJson, needsToken } from "../shared/http.ts";
import type { MapLink, MapNode, Selection } from "../shared/map.tsx";
import { Ring } from "../shared/ring.ts";
import { follow } from "../shared/sse.ts";
import { FlowHistory, HealthHistory } from "./history.ts";
import type { FlowSummaryView, LinkView, LiveDocument, PreviewView, TopologyView } from "./rest.ts";

const INTERVAL_MS = 1000;
/** A network that swallows the answer says so to nobody. */
const PATIENCE_MS = 20_000;
const PAST_EVENTS = 500;
const KEPT_EVENTS = 5000;
const DRAW_MS = 100;
/** A snapshot is as old as this at most when it is sent: one that was asked for later has a change in it. */
const SNAPSHOT_AGE_MS = 1050;

export type Connection = { state: "loading" } | { state: "live" } | { state: "lost"; since_ms: number; reason: string };

export const topology = signal<TopologyView | null>(null);
export const directions = signal<readonly LinkView[]>([]);
export const live = signal<LiveDocument | null>(null);
export const connection = signal<Connection>({ state: "loading" });
export const selection = signal<Selection>(null);
export const preview = signal<{ title: string; answer: PreviewView } | null>(null);
/** Counts up with each batch of events. */
export const eventsVersion = signal(0);
export const areEventsLive = signal(false);

/** An event of `GET /v1/events`. */
export interface TimelineEvent {
  key: string;
  kind: string;
  time_s: number;
  text: string;
  data: Record<string, unknown>;
}

export const events = new Ring<TimelineEvent>(KEPT_EVENTS);
export const flowHistory = new FlowHistory();
export const healthHistory = new HealthHistory();

export const flows = computed<readonly FlowSummaryView[]>(() => live.value?.flows ?? []);

/** Select something on the map and in the panel beside it; null: nothing. */
export function select(what: Selection): void {
  selection.value = what;
}

const namesOf = (kind: "host" | "switch"): string[] =>
  (topology.value?.nodes ?? []).filter((node) => node.kind === kind).map((node) => node.name);

export const hostNames = computed(() => namesOf("host"));
export const switchNames = computed(() => namesOf("switch"));
export const linkNames = computed(() => (topology.value?.links ?? []).map((link) => link.ends.join("-")));

export const selectedFlow = computed<FlowSummaryView | null>(() => {
  const chosen = selection.value;
  return chosen?.kind === "flow" ? (flows.value.find((flow) => flow.flow_id === chosen.id) ?? null) : null;
});

export type LoadKind = "allocated" | "measured";

/** What links are coloured by. */
export const loadKind = signal<LoadKind>("allocated");

export const isMeasured = computed(() => live.value?.links.measured_bps.some((rate) => rate !== null) ?? false);

/** Indices of both directions of each link, by its name. */
const indices = computed(() => {
  const byName = new Map<string, number[]>();
  for (const [index, { name }] of directions.value.entries()) byName.set(name, [...(byName.get(name) ?? []), index]);
  return byName;
});

export interface DirectionNow {
  tail: string;
  head: string;
  capacity_bps: number;
  allocated_bps: number;
  measured_bps: number | null;
  unrequested_bps: number | null;
  up: boolean;
  enabled: boolean;
  delay_s: number;
}

/** Both directions of a link as they are now. */
export function directionsOf(name: string): DirectionNow[] {
  const now = live.value?.links;
  if (!now) return [];
  return (indices.value.get(name) ?? []).flatMap((index) => {
    const direction = directions.value[index];
    return direction === undefined
      ? []
      : [
          {
            tail: direction.tail,
            head: direction.head,
            delay_s: direction.delay_s,
            capacity_bps: now.capacity_bps[index] ?? direction.capacity_bps,
            allocated_bps: now.allocated_bps[index] ?? 0,
            measured_bps: now.measured_bps[index] ?? null,
            unrequested_bps: now.unrequested_bps[index] ?? null,
            up: now.up[index] ?? false,
            enabled: now.enabled[index] ?? true,
          },
        ];
  });
}

export const mapNodes = computed<MapNode[]>(() => {
  const states = live.value?.nodes;
  return (topology.value?.nodes ?? []).map((node, index) => ({
    id: node.name,
    kind: node.kind,
    x: node.x ?? 0,
    y: node.y ?? 0,
    state: states?.[index] ?? "up",
  }));
});

export const connectedSwitches = computed(
  () => mapNodes.value.filter((node) => node.kind === "switch" && node.state === "up").length,
);

/** The links as they would be; null while nothing is supposed. */
export const previewLinks = computed<MapLink[] | null>(() => {
  const answer = preview.value?.answer;
  if (!answer) return null;
  const after = new Map<string, { use: number; up: boolean }>();
  for (const link of answer.links) {
    const other = after.get(link.name);
    after.set(link.name, {
      use: Math.max(other?.use ?? 0, link.utilisation_after),
      up: link.up && (other?.up ?? true),
    });
  }
  return linksBy((name) => ({ utilisation: after.get(name)?.use ?? null, up: after.get(name)?.up ?? true }));
});

export const mapLinks = computed<MapLink[]>(() => {
  const now = live.value?.links;
  return linksBy((name) => {
    if (!now) return { utilisation: null, up: true };
    let utilisation: number | null = null;
    let up = true;
    for (const index of indices.value.get(name) ?? []) {
      const load = loadKind.value === "measured" ? now.measured_bps[index] : now.allocated_bps[index];
      const capacity = now.capacity_bps[index] ?? 0;
      if (load !== null && load !== undefined && capacity > 0)
        utilisation = Math.max(utilisation ?? 0, load / capacity);
      up &&= now.up[index] ?? false;
    }
    return { utilisation, up };
  });
});

function linksBy(look: (name: string) => { utilisation: number | null; up: boolean }): MapLink[] {
  return (topology.value?.links ?? []).map((link) => {
    const id = link.ends.join("-");
    return { id, ends: link.ends, ...look(id) };
  });
}

let changed_ms = -Infinity;

/** Show the answer to a change at once; snapshots that were taken before it are passed over. */
export function applyFlow(flow: FlowSummaryView): void {
  replaceFlows((all) => [...all.filter((other) => other.flow_id !== flow.flow_id), flow]);
}

/** Show at once that a flow has ended. */
export function removeFlow(flowId: string): void {
  replaceFlows((all) => all.filter((flow) => flow.flow_id !== flowId));
}

function replaceFlows(change: (flows: FlowSummaryView[]) => FlowSummaryView[]): void {
  changed_ms = performance.now();
  if (live.value) live.value = { ...live.value, flows: change(live.value.flows) };
}

let wake: () => void = () => {};

/** Ask again now instead of when it is due. */
export function refreshNow(): void {
  wake();
}

/** What stays as it is while the controller runs: asked for at the start and when it may be another one. */
async function load(): Promise<[TopologyView, LinkView[]] | null> {
  if (topology.value && connection.value.state !== "lost") return null;
  return Promise.all([getJson<TopologyView>("/v1/topology"), getJson<LinkView[]>("/v1/links")]);
}

async function look(): Promise<void> {
  const asked_ms = performance.now();
  const [loaded, seen] = await Promise.all([
    load(),
    getJson<LiveDocument>("/v1/live", AbortSignal.timeout(PATIENCE_MS)),
  ]);
  batch(() => {
    if (loaded) [topology.value, directions.value] = loaded;
    connection.value = { state: "live" };
    if (asked_ms < changed_ms + SNAPSHOT_AGE_MS || seen.time_s === live.value?.time_s) return;
    flowHistory.take(seen);
    healthHistory.take(seen);
    live.value = seen;
  });
}

function reasonOf(error: unknown): string {
  return error instanceof ApiError ? error.detail : "the page met an answer that it does not know; load it again";
}

/** Look each second as long as the page is seen; where that fails, say so and go on trying. */
async function watch(): Promise<void> {
  let failures = 0;
  for (;;) {
    try {
      if (!needsToken.value) await look();
      failures = 0;
    } catch (error) {
      failures += 1;
      if (connection.value.state !== "lost")
        connection.value = { state: "lost", since_ms: Date.now(), reason: reasonOf(error) };
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, INTERVAL_MS * Math.min(5, Math.max(1, failures)));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    while (document.hidden)
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

let _drawing: ReturnType<typeof setTimeout> | undefined;

/** The kind of the event that says that others are missing. */
export const GAP = "history_lost";

function takeEvents(arrived: readonly { id: string | null; data: string }[]): void {
  for (const { id, data } of arrived) {
    const event = JSON.parse(data) as Partial<TimelineEvent> & { kind: string; missed?: number | null };
    const time_s = event.time_s ?? Date.now() / 1000;
    events.push({
      kind: event.kind,
      text: event.text ?? "",
      time_s,
      data: event.data ?? { missed: event.missed ?? null },
      key: id ?? `gap-${events.total}`,
    });
  }
  // Drawn together: many may come within a moment.
  _drawing ??= setTimeout(() => {
    _drawing = undefined;
    eventsVersion.value += 1;
  }, DRAW_MS);
}

let stopFollowing: () => void = () => {};

function followEvents(): void {
  stopFollowing();
  events.clear();
  stopFollowing = follow(`/v1/events?history=${PAST_EVENTS}`, "/v1/events", {
    events: takeEvents,
    connected: (isConnected) => {
      areEventsLive.value = isConnected;
    },
  });
}

/** Begin to look and to follow. */
export function start(): void {
  void watch();
  let followed: string | null | undefined;
  needsToken.subscribe((needed) => {
    if (needed) stopFollowing();
    if (needed || followed === bearer()) return;
    followed = bearer();
    followEvents();
    refreshNow();
  });
}
