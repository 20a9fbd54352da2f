/** What happened, newest first, with how long recovery took. */
import { signal } from "@preact/signals";
import { bitrate, clock, duration, plural } from "../shared/format.ts";
import type { Selection } from "../shared/map.tsx";
import { Badge, Empty, type Tone } from "../shared/notices.tsx";
import { Segments } from "../shared/segments.tsx";
import { areEventsLive, events, eventsVersion, GAP, select, type TimelineEvent } from "./store.ts";

type Group = "all" | "failures" | "flows" | "refusals";

const GROUPS: readonly { id: Group; title: string }[] = [
  { id: "all", title: "All" },
  { id: "failures", title: "Network" },
  { id: "flows", title: "Flows" },
  { id: "refusals", title: "Refused" },
];

const PAGE = 100;

const group = signal<Group>("all");
const shown = signal(PAGE);

const BAD = /^(link_down|port_down|switch_lost|switch_down|flow_refused|flow_ended|configuration_refused)$/;
const WARN = /^(flow_degraded|flow_expired|link_changed|unrequested_traffic|history_lost)$/;
const GOOD = /^(link_up|port_up|switch_up|flow_restored|flow_granted|flow_replanned)$/;

function toneOf(kind: string): Tone {
  return BAD.test(kind) ? "bad" : WARN.test(kind) ? "warn" : GOOD.test(kind) ? "good" : "plain";
}

function isIn(event: TimelineEvent, wanted: Group): boolean {
  if (wanted === "all" || event.kind === GAP) return true;
  if (wanted === "refusals") return event.kind.endsWith("_refused");
  const isOfFlow = event.kind.startsWith("flow_");
  return wanted === "flows" ? isOfFlow : !isOfFlow || event.kind === "flow_replanned" || event.kind === "flow_restored";
}

function textOf(event: TimelineEvent): string {
  const { missed, flow, source, destination } = event.data;
  if (event.kind !== GAP) {
    // A flow's ends tell people more than its id.
    const isOfFlow = typeof flow === "string" && typeof source === "string";
    let text = isOfFlow ? event.text.replace(`flow ${flow}`, `${source} → ${String(destination)}`) : event.text;
    if (typeof event.data.recovery_s === "number") text = text.replace(/ in [0-9.]+ s$/, ""); // shown below
    return text;
  }
  return typeof missed === "number"
    ? `${missed} events came while the page was not connected and are not kept any more`
    : "The controller was restarted: what follows is all since then";
}

/** What a flow has, where the event tells it. */
function ratesOf(event: TimelineEvent): string {
  const { rate_bps, requested_bps, paths, owner } = event.data;
  if (typeof rate_bps !== "number" || typeof requested_bps !== "number") return "";
  const over = Array.isArray(paths) ? ` over ${plural(paths.length, "path")}` : "";
  return `${bitrate(rate_bps)} of ${bitrate(requested_bps)}${over}${typeof owner === "string" ? `, ${owner}` : ""}`;
}

/** What an event is of. */
function subjectOf({ data }: TimelineEvent): Selection {
  const link = data.name ?? data.link;
  if (typeof data.flow === "string") return { kind: "flow", id: data.flow };
  if (typeof link === "string") return { kind: "link", id: link };
  return typeof data.switch === "string" ? { kind: "node", id: data.switch } : null;
}

function show(wanted: Group, most = PAGE): void {
  group.value = wanted;
  shown.value = most;
}

export function Timeline() {
  void eventsVersion.value;
  const rows: TimelineEvent[] = [];
  for (let index = 0; index < events.length && rows.length <= shown.value; index += 1) {
    const event = events.newest(index);
    if (event && isIn(event, group.value)) rows.push(event);
  }
  const hasMore = rows.length > shown.value;
  return (
    <div class="timeline">
      <div class="row timeline-head">
        <Segments label="Which events" segments={GROUPS} current={group.value} onChange={show} />
        <span class="spacer" />
        {areEventsLive.value ? <Badge tone="good">live</Badge> : <Badge tone="warn">reconnecting</Badge>}
      </div>
      {rows.length === 0 ? (
        <Empty title="No events yet">Changes of links, switches and flows appear here.</Empty>
      ) : (
        <ol class="events" aria-label="Events, newest first">
          {rows.slice(0, shown.value).map((event) => (
            <Row key={event.key} event={event} />
          ))}
        </ol>
      )}
      {hasMore ? (
        <button class="more" onClick={() => show(group.value, shown.value + PAGE)}>
          Show older events
        </button>
      ) : null}
    </div>
  );
}

function Row({ event }: { event: TimelineEvent }) {
  const recovery = event.data.recovery_s;
  const subject = subjectOf(event);
  const text = textOf(event);
  const rates = ratesOf(event);
  return (
    <li class={`event ${toneOf(event.kind)}`} data-kind={event.kind} title={event.kind.replaceAll("_", " ")}>
      <time class="mono" dateTime={new Date(event.time_s * 1000).toISOString()}>
        {clock(event.time_s)}
      </time>
      <span class="event-mark" aria-hidden="true" />
      <div>
        {subject ? (
          <button class="link event-text" onClick={() => select(subject)}>
            {text}
          </button>
        ) : (
          <span class="event-text">{text}</span>
        )}
        {rates ? <div class="event-more">{rates}</div> : null}
        {typeof recovery === "number" ? <div class="recovery">recovered in {duration(recovery)}</div> : null}
      </div>
    </li>
  );
}
