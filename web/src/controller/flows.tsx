/** All flows in a table: search, sort, and how each went in the last minute. */
import { signal, useComputed } from "@preact/signals";
import { bitrate, plural, remaining } from "../shared/format.ts";
import { Empty } from "../shared/notices.tsx";
import { Sparkline } from "../shared/sparkline.tsx";
import { type Column, Table } from "../shared/table.tsx";
import { openDialog } from "./actions.ts";
import { measuredOf } from "./history.ts";
import type { FlowSummaryView } from "./rest.ts";
import { connectedSwitches, flowHistory, flows, live, select, selection } from "./store.ts";

const search = signal("");

/** Whether it is granted less than it requested. */
export function isShort(flow: FlowSummaryView): boolean {
  return flow.rate_bps < flow.requested_bps * (1 - 1e-4);
}

const COLUMNS: readonly Column<FlowSummaryView>[] = [
  {
    key: "flow",
    title: "Flow",
    width: "minmax(130px, 2.6fr)",
    sort: (flow) => `${flow.source} ${flow.destination} ${flow.destination_port}`,
    render: (flow) => (
      <>
        <b>{flow.source}</b> → <b>{flow.destination}</b> <span class="quiet">:{flow.destination_port}</span>
      </>
    ),
  },
  {
    key: "requested",
    title: "Requested",
    hint: "Goodput requested",
    width: "minmax(92px, 1fr)",
    isNumber: true,
    isExtra: true,
    sort: (flow) => flow.requested_bps,
    render: (flow) => bitrate(flow.requested_bps),
  },
  {
    key: "granted",
    title: "Granted",
    hint: "Goodput granted",
    width: "minmax(96px, 1fr)",
    isNumber: true,
    sort: (flow) => flow.rate_bps,
    render: (flow) =>
      isShort(flow) ? (
        <span class="short" title="Less than it requested">
          ▾ {bitrate(flow.rate_bps)}
        </span>
      ) : (
        bitrate(flow.rate_bps)
      ),
  },
  {
    key: "measured",
    title: "Measured",
    hint: "Goodput, from the bytes that the first switch counted",
    width: "minmax(88px, 1fr)",
    isNumber: true,
    isExtra: true,
    sort: (flow) => measuredOf(flow) ?? -1,
    render: (flow) => bitrate(measuredOf(flow)),
  },
  {
    key: "trend",
    title: "Last minute",
    width: "104px",
    render: (flow) => (
      <Sparkline
        values={flowHistory.spark(flow.flow_id)}
        most={flow.requested_bps}
        label={`Rate over the last minute, now ${bitrate(measuredOf(flow) ?? flow.rate_bps)}`}
      />
    ),
  },
  {
    key: "paths",
    title: "Paths",
    width: "62px",
    isNumber: true,
    isExtra: true,
    sort: (flow) => flow.streams.length,
    render: (flow) => flow.streams.length,
  },
  {
    key: "lease",
    title: "Lease",
    hint: "What is left of it",
    width: "92px",
    isNumber: true,
    isExtra: true,
    sort: (flow) => flow.expires_in_s,
    render: (flow) => remaining(flow.expires_in_s),
  },
  {
    key: "owner",
    title: "Owner",
    width: "minmax(68px, 0.7fr)",
    isExtra: true,
    sort: (flow) => flow.owner ?? "",
    render: (flow) => flow.owner ?? <span class="quiet">–</span>,
  },
];

function matches(flow: FlowSummaryView, words: readonly string[]): boolean {
  const text =
    `${flow.source} ${flow.destination} ${flow.source}→${flow.destination} :${flow.destination_port} ${flow.owner ?? ""} ${flow.flow_id} ${isShort(flow) ? "short" : ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function Flows() {
  const shown = useComputed(() => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length === 0 ? flows.value : flows.value.filter((flow) => matches(flow, words));
  });
  const chosen = selection.value?.kind === "flow" ? selection.value.id : null;
  return (
    <section class="card flows" aria-label="Flows">
      <div class="card-head">
        <h2>Flows</h2>
        <span class="quiet flow-count" role="status">
          {search.value ? `${shown.value.length} of ${flows.value.length}` : flows.value.length}
        </span>
        <span class="spacer" />
        <input
          type="search"
          class="search"
          placeholder="Search host, port, owner…"
          aria-label="Search flows"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
        />
        <button class="primary" onClick={() => openDialog({ kind: "request" })}>
          Request<span class="wide-only"> a flow</span>
        </button>
      </div>
      <Table
        label="Flows"
        columns={COLUMNS}
        rows={shown.value}
        id={(flow) => flow.flow_id}
        selected={chosen}
        onSelect={(flow) => select({ kind: "flow", id: flow.flow_id })}
        empty={
          flows.value.length > 0 ? (
            <Empty title={`No flow matches “${search.value}”`}>
              {plural(flows.value.length, "flow")} in all.{" "}
              <button
                class="link"
                onClick={() => {
                  search.value = "";
                }}
              >
                Clear the search
              </button>
            </Empty>
          ) : live.value && connectedSwitches.value === 0 ? (
            <Empty title="No switch is connected">
              Let the switches connect to this controller, as with{" "}
              <code>ovs-vsctl set-controller BRIDGE tcp:ADDRESS:6653</code>. Flows are refused until then.
            </Empty>
          ) : (
            <Empty title="No flows yet">
              Request one here, or have an application ask with <code>mstcp.open_connection(…, controller=…)</code>.
            </Empty>
          )
        }
      />
    </section>
  );
}
