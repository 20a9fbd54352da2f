/** The figures of the chosen runs: means over their seeds. */
import { bitrate, duration, percent } from "../shared/format.ts";
import { flowOf, namesOf, protocolsOf } from "./choice.ts";
import { Means } from "./means.tsx";
import type { Estimate, FlowRow, RunRow } from "./rest.ts";
import { estimate } from "./statistics.ts";

interface Row {
  flow: FlowRow;
  protocol: string;
  runs: number;
  over: (value: (flow: FlowRow) => number | null | undefined) => Estimate | null;
}

function rowsOf(runs: readonly RunRow[], flow: string): Row[] {
  return namesOf(runs, flow).flatMap((name) =>
    protocolsOf(runs).flatMap((protocol): Row[] => {
      const flows = runs.filter((run) => run.protocol === protocol).flatMap((run) => flowOf(run, name) ?? []);
      const over: Row["over"] = (value) => estimate(flows.map(value).filter((each) => typeof each === "number"));
      return flows[0] ? [{ flow: flows[0], protocol, runs: flows.length, over }] : [];
    }),
  );
}

export function Summary({ runs, flow, name }: { runs: readonly RunRow[]; flow: string; name: string }) {
  return (
    <Means
      name={`summary-${name}`}
      rows={rowsOf(runs, flow)}
      plain={[
        { column: "flow", title: "Flow", width: "minmax(50px, 0.5fr)", of: (row) => row.flow.flow },
        {
          column: "ends",
          title: "Ends",
          width: "minmax(0, 0.8fr)",
          isExtra: true,
          of: (row) => `${row.flow.src} to ${row.flow.dst}`,
        },
        { column: "protocol", title: "Protocol", width: "minmax(68px, 0.8fr)", of: (row) => row.protocol },
        { column: "runs", title: "Runs", width: "56px", isNumber: true, isExtra: true, of: (row) => row.runs },
        {
          column: "requested_bps",
          title: "Requested",
          width: "minmax(92px, 1fr)",
          isNumber: true,
          isExtra: true,
          of: (row) => row.flow.requested_bps,
          render: (row) => bitrate(row.flow.requested_bps),
        },
      ]}
      means={[
        {
          column: "goodput_bps",
          title: "Goodput",
          share: 1.6,
          of: (row) => row.over((each) => each.goodput_bps),
          format: bitrate,
        },
        {
          column: "delay_mean_s",
          title: "Mean delay",
          of: (row) => row.over((each) => each.delay_s?.mean),
          format: duration,
        },
        {
          column: "delay_p99_s",
          title: "p99 delay",
          hint: "99th percentile of the delay",
          isExtra: true,
          of: (row) => row.over((each) => each.delay_s?.p99),
          format: duration,
        },
        {
          column: "out_of_order_ratio",
          title: "Reordered",
          share: 1.2,
          hint: "Share of the frames that arrived before an earlier one",
          isExtra: true,
          of: (row) => row.over((each) => each.out_of_order_ratio),
          format: percent,
        },
      ]}
    />
  );
}
