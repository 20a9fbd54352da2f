/** The figures of the chosen runs as a table: means over seeds with their intervals. */
import { bitrate, duration, percent } from "../shared/format.ts";
import { Table } from "../shared/table.tsx";
import { ALL_FLOWS, flowOf, protocolsOf } from "./choice.ts";
import { saveCsv } from "./export.ts";
import type { FlowRow, RunRow } from "./rest.ts";
import type { Estimate } from "./statistics.ts";
import { estimate } from "./statistics.ts";

interface Row {
  flow: string;
  ends: string;
  protocol: string;
  runs: number;
  requested_bps: number;
  goodput: Estimate | null;
  delay: Estimate | null;
  p99: Estimate | null;
  outOfOrder: Estimate | null;
}

export function summaryRows(runs: readonly RunRow[], flow: string): Row[] {
  const names = flow === ALL_FLOWS ? [...new Set(runs.flatMap((run) => run.flows.map((each) => each.flow)))] : [flow];
  return names.flatMap((name) =>
    protocolsOf(runs).flatMap((protocol): Row[] => {
      const flows = runs
        .filter((run) => run.protocol === protocol)
        .map((run) => flowOf(run, name))
        .filter((each): each is FlowRow => each !== undefined);
      const first = flows[0];
      if (!first) return [];
      const over = (value: (flow: FlowRow) => number | null | undefined): Estimate | null =>
        estimate(flows.map(value).filter((each): each is number => typeof each === "number"));
      return [
        {
          flow: name,
          ends: `${first.src} to ${first.dst}`,
          protocol,
          runs: flows.length,
          requested_bps: first.requested_bps,
          goodput: over((each) => each.goodput_bps),
          delay: over((each) => each.delay_s?.mean),
          p99: over((each) => each.delay_s?.p99),
          outOfOrder: over((each) => each.out_of_order_ratio),
        },
      ];
    }),
  );
}

/** A mean with its interval in one unit, as "8.50 ± 0.01 Mbit/s". */
export function within(estimated: Estimate | null, format: (value: number) => string): string {
  if (!estimated) return "–";
  const [number = "", unit = ""] = format(estimated.mean).split(" ");
  if (estimated.halfWidth === null) return `${number} ${unit}`;
  const scale = Number(number) === 0 ? 1 : estimated.mean / Number(number);
  const decimals = number.split(".")[1]?.length ?? 0;
  return `${number} ± ${(estimated.halfWidth / scale).toFixed(decimals)} ${unit}`;
}

const NUMBERS = ["goodput_bps", "delay_mean_s", "delay_p99_s", "out_of_order_ratio"];

function csvRows(rows: readonly Row[]): (string | number | null)[][] {
  const head = [
    "flow",
    "ends",
    "protocol",
    "runs",
    "requested_bps",
    ...NUMBERS.flatMap((name) => [name, `${name}_half_width`]),
  ];
  const values = (estimated: Estimate | null): (number | null)[] => [
    estimated?.mean ?? null,
    estimated?.halfWidth ?? null,
  ];
  return [
    head,
    ...rows.map((row) => [
      row.flow,
      row.ends,
      row.protocol,
      row.runs,
      row.requested_bps,
      ...[row.goodput, row.delay, row.p99, row.outOfOrder].flatMap(values),
    ]),
  ];
}

export function Summary({ runs, flow, name }: { runs: readonly RunRow[]; flow: string; name: string }) {
  const rows = summaryRows(runs, flow);
  const number = { isNumber: true, width: "minmax(0, 1.3fr)" };
  return (
    <section class="card figure wide" aria-label="Summary">
      <div class="card-head">
        <h2>Means over seeds</h2>
        <span class="quiet">± 95 % interval of the mean</span>
        <span class="spacer" />
        <div class="exports" role="group" aria-label="Save the table">
          <button
            class="export"
            aria-label="Save the table as CSV"
            onClick={() => saveCsv(`summary-${name}`, csvRows(rows))}
          >
            CSV
          </button>
        </div>
      </div>
      <div class="summary-table" style={{ height: `${Math.min(12, rows.length + 1) * 38 + 4}px` }}>
        <Table
          label="Means over seeds"
          rows={rows}
          id={(row) => `${row.flow} ${row.protocol}`}
          empty="No run was chosen."
          columns={[
            {
              key: "flow",
              title: "Flow",
              width: "minmax(0, 1fr)",
              render: (row) => (
                <>
                  <b>{row.flow}</b> <span class="quiet">{row.ends}</span>
                </>
              ),
              sort: (row) => row.flow,
            },
            {
              key: "protocol",
              title: "Protocol",
              width: "minmax(0, 1fr)",
              render: (row) => row.protocol,
              sort: (row) => row.protocol,
            },
            {
              key: "runs",
              title: "Runs",
              width: "46px",
              isNumber: true,
              isExtra: true,
              render: (row) => row.runs,
              sort: (row) => row.runs,
            },
            {
              key: "requested",
              title: "Asked for",
              ...number,
              isExtra: true,
              render: (row) => bitrate(row.requested_bps),
              sort: (row) => row.requested_bps,
            },
            {
              key: "goodput",
              title: "Goodput",
              ...number,
              render: (row) => within(row.goodput, bitrate),
              sort: (row) => row.goodput?.mean ?? -1,
            },
            {
              key: "delay",
              title: "Mean delay",
              ...number,
              render: (row) => within(row.delay, duration),
              sort: (row) => row.delay?.mean ?? Infinity,
            },
            {
              key: "p99",
              title: "99 % of delays below",
              ...number,
              isExtra: true,
              render: (row) => within(row.p99, duration),
              sort: (row) => row.p99?.mean ?? Infinity,
            },
            {
              key: "order",
              title: "Out of order",
              hint: "Share of the frames that arrived before an earlier one",
              width: "minmax(0, 0.8fr)",
              isNumber: true,
              isExtra: true,
              render: (row) => percent(row.outOfOrder?.mean),
              sort: (row) => row.outOfOrder?.mean ?? -1,
            },
          ]}
        />
      </div>
    </section>
  );
}
