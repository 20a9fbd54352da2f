/** A sweep: what each protocol carries as the load rises. */
import { bitrate, duration, percent, plural } from "../shared/format.ts";
import { Badge } from "../shared/notices.tsx";
import { Table } from "../shared/table.tsx";
import { saveCsv } from "./export.ts";
import { LineFigure } from "./figure.tsx";
import type { Axis, LinePlot } from "./line_plot.ts";
import { DELAY, GOODPUT, seriesOf } from "./plots.ts";
import type { Estimate, SweepOverview, SweepRow } from "./rest.ts";
import { within } from "./summary.tsx";

const LOAD: Axis = { label: "load (asked for over what the network can carry)", column: "load", scale: 1 };
const RECEIVED: Axis = { label: "received of what was admitted in %", column: "received_of_admitted", scale: 0.01 };

function plotOf(
  overview: SweepOverview,
  name: string,
  title: string,
  y: Axis,
  value: (row: SweepRow) => Estimate | null,
  atLeast?: number,
): LinePlot {
  const protocols = [...new Set(overview.rows.map((row) => row.protocol))];
  const lines = protocols.map((protocol) => {
    const rows = overview.rows.filter((row) => row.protocol === protocol);
    return {
      label: protocol,
      series: seriesOf(overview.looks, protocol),
      x: rows.map((row) => row.load),
      y: rows.map((row) => value(row)?.mean ?? null),
    };
  });
  return { name: `sweep-${name}`, title, x: LOAD, y, lines, ...(atLeast === undefined ? {} : { atLeast }) };
}

const estimate = (estimated: Estimate | null) =>
  estimated ? { mean: estimated.mean, halfWidth: estimated.half_width, count: estimated.count } : null;

export function Sweep({ overview }: { overview: SweepOverview }) {
  const columns = [
    "requested_bps",
    "admitted_bps",
    "received_bps",
    "received_of_admitted",
    "received_of_requested",
    "delay_mean_s",
  ] as const;
  const rows = (): (string | number | null)[][] => [
    ["load", "protocol", ...columns.flatMap((name) => [name, `${name}_half_width`])],
    ...overview.rows.map((row) => [
      row.load,
      row.protocol,
      ...columns.flatMap((name) => [row[name]?.mean ?? null, row[name]?.half_width ?? null]),
    ]),
  ];
  const number = { isNumber: true, width: "minmax(0, 1fr)" };
  return (
    <div class="figures">
      <p class="quiet">
        <Badge tone="plain">sweep</Badge>{" "}
        {Object.entries(overview.conditions)
          .filter(([, value]) => value !== null)
          .map(([name, value]) => `${name} ${String(value)}`)
          .join(", ")}
        ; {plural(overview.seeds, "seed")}.
      </p>
      <LineFigure
        plot={plotOf(overview, "goodput", "Goodput of all flows", GOODPUT, (row) => row.received_bps)}
        note="Means over the seeds; the table has their intervals."
      />
      <LineFigure
        plot={plotOf(overview, "delay", "Mean delay", { ...DELAY, column: "delay_mean_s" }, (row) => row.delay_mean_s)}
      />
      <LineFigure
        wide
        plot={plotOf(
          overview,
          "share",
          "Received of what was admitted",
          RECEIVED,
          (row) => row.received_of_admitted,
          1,
        )}
      />
      <section class="card figure wide" aria-label="Points">
        <div class="card-head">
          <h2>Means over seeds</h2>
          <span class="spacer" />
          <div class="exports">
            <button class="export" aria-label="Save the table as CSV" onClick={() => saveCsv("sweep", rows())}>
              CSV
            </button>
          </div>
        </div>
        <div class="summary-table" style={{ height: `${Math.min(14, overview.rows.length + 1) * 38 + 4}px` }}>
          <Table
            label="Means over seeds"
            rows={overview.rows}
            id={(row) => `${row.load} ${row.protocol}`}
            empty="No point was finished."
            columns={[
              {
                key: "load",
                title: "Load",
                width: "70px",
                isNumber: true,
                render: (row) => row.load,
                sort: (row) => row.load,
              },
              {
                key: "protocol",
                title: "Protocol",
                width: "minmax(0, 1fr)",
                render: (row) => row.protocol,
                sort: (row) => row.protocol,
              },
              {
                key: "requested",
                title: "Asked for",
                ...number,
                isExtra: true,
                render: (row) => bitrate(row.requested_bps.mean),
                sort: (row) => row.requested_bps.mean,
              },
              {
                key: "admitted",
                title: "Admitted",
                ...number,
                isExtra: true,
                render: (row) => bitrate(row.admitted_bps.mean),
                sort: (row) => row.admitted_bps.mean,
              },
              {
                key: "received",
                title: "Received",
                ...number,
                render: (row) => within(estimate(row.received_bps), bitrate),
                sort: (row) => row.received_bps.mean,
              },
              {
                key: "share",
                title: "Of admitted",
                ...number,
                isExtra: true,
                render: (row) => percent(row.received_of_admitted?.mean),
                sort: (row) => row.received_of_admitted?.mean ?? -1,
              },
              {
                key: "delay",
                title: "Mean delay",
                ...number,
                render: (row) => within(estimate(row.delay_mean_s), duration),
                sort: (row) => row.delay_mean_s?.mean ?? Infinity,
              },
            ]}
          />
        </div>
      </section>
    </div>
  );
}
