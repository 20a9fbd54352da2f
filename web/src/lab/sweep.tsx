/** A sweep: what each protocol carries as the load rises. */
import { bitrate, duration, percent, plural } from "../shared/format.ts";
import { Badge } from "../shared/notices.tsx";
import { LineFigure } from "./figure.tsx";
import type { Axis, LinePlot } from "./line_plot.ts";
import { Means } from "./means.tsx";
import { DELAY, GOODPUT, seriesOf } from "./plots.ts";
import type { Estimate, SweepOverview, SweepRow } from "./rest.ts";

type MeanKey = Exclude<keyof SweepRow, "load" | "protocol">;

const LOAD: Axis = { label: "load (requested over what the network can carry)", column: "load", scale: 1 };
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
  return { name: `sweep-${name}`, title, x: LOAD, y, lines, atLeast };
}

export function Sweep({ overview }: { overview: SweepOverview }) {
  const plot = (name: string, title: string, y: Axis, value: (row: SweepRow) => Estimate | null, atLeast?: number) =>
    plotOf(overview, name, title, y, value, atLeast);
  const conditions = Object.entries(overview.conditions)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${String(value)}`);
  const mean = (column: MeanKey, title: string, format: (value: number) => string, isExtra: boolean) => ({
    column,
    title,
    format,
    isExtra,
    of: (row: SweepRow) => row[column],
  });
  return (
    <div class="figures">
      <p class="quiet">
        <Badge tone="plain">sweep</Badge> {conditions.join(", ")}; {plural(overview.seeds, "seed")}.
      </p>
      <LineFigure
        plot={plot("goodput", "Goodput of all flows", GOODPUT, (row) => row.received_bps)}
        note="Means over the seeds; the table has their intervals."
      />
      <LineFigure plot={plot("delay", "Mean delay", { ...DELAY, column: "delay_mean_s" }, (row) => row.delay_mean_s)} />
      <LineFigure
        wide
        plot={plot("share", "Received of what was admitted", RECEIVED, (row) => row.received_of_admitted, 1)}
      />
      <Means
        name="sweep"
        rows={overview.rows}
        plain={[
          { column: "load", title: "Load", width: "52px", isNumber: true, of: (row) => row.load },
          { column: "protocol", title: "Protocol", width: "minmax(72px, 1fr)", of: (row) => row.protocol },
        ]}
        means={[
          mean("requested_bps", "Requested", bitrate, true),
          mean("admitted_bps", "Admitted", bitrate, true),
          mean("received_bps", "Received", bitrate, false),
          mean("received_of_admitted", "Of admitted", percent, true),
          mean("received_of_requested", "Of requested", percent, true),
          mean("delay_mean_s", "Mean delay", duration, false),
        ]}
      />
    </div>
  );
}
