/** One dot for each run, with mean and interval: how protocols compare, flow by flow. */
import type { Axis } from "./line_plot.ts";
import type { Drawing, Ink, Shape } from "./shapes.ts";
import { line, round, text, ticks } from "./shapes.ts";
import { estimate } from "./statistics.ts";

export interface DotRow {
  /** Rows of one group stand together under its name. */
  group: string;
  label: string;
  series: number;
  points: readonly { seed: number; value: number }[];
  /** The requested rate: a stroke across the row. */
  target: number | null;
}

export interface DotPlot {
  name: string;
  title: string;
  x: Axis;
  rows: readonly DotRow[];
  /** A value with its unit, for who points at it. */
  format: (value: number) => string;
  targetName: string;
}

const ROW = 22;
const GROUP = 26;
const TOP = 34;
const RIGHT = 22;

export function drawDots(plot: DotPlot, ink: Ink, width = 720): Drawing {
  const left = 22 + Math.min(width * 0.4, Math.max(60, ...plot.rows.map((row) => row.label.length * 7)));
  const groups = [...new Set(plot.rows.map((row) => row.group))];
  const top = plot.title ? TOP : 6;
  const bottom = top + groups.length * GROUP + plot.rows.length * ROW;
  const values = plot.rows.flatMap((row) => [
    ...row.points.map((point) => point.value),
    row.target ?? 0,
    upperEnd(row),
  ]);
  const most = (Math.max(0, ...values) || plot.x.scale) * 1.04;
  const at = (value: number): number => left + (Math.max(0, value) / most) * (width - RIGHT - left);
  const shapes: Shape[] = plot.title
    ? [text(22, 20, plot.title, ink.text, { "font-weight": 650, "font-size": 13 })]
    : [];
  for (const tick of ticks(0, most / plot.x.scale, width < 500 ? 4 : 7)) {
    const x = at(tick * plot.x.scale);
    shapes.push(
      line(x, top, x, bottom, ink.line),
      text(x, bottom + 16, String(Number(tick.toPrecision(6))), ink.quiet, {
        "text-anchor": "middle",
        "font-size": 11,
      }),
    );
  }
  let y = top;
  for (const group of groups) {
    shapes.push(text(22, y + 17, group, ink.text, { "font-weight": 600 }));
    y += GROUP;
    for (const row of plot.rows.filter((each) => each.group === group)) {
      shapes.push(...drawRow(row, plot, y + ROW / 2, left, at, ink));
      y += ROW;
    }
  }
  shapes.push(text((left + width - RIGHT) / 2, bottom + 34, plot.x.label, ink.text, { "text-anchor": "middle" }));
  return { width, height: bottom + 44, title: plot.title, shapes };
}

function upperEnd(row: DotRow): number {
  const estimated = estimate(row.points.map((point) => point.value));
  return estimated ? estimated.mean + (estimated.half_width ?? 0) : 0;
}

function drawRow(
  row: DotRow,
  plot: DotPlot,
  y: number,
  left: number,
  at: (value: number) => number,
  ink: Ink,
): Shape[] {
  const colour = ink.series[row.series % ink.series.length] ?? ink.text;
  const shapes: Shape[] = [text(left - 10, y + 4, row.label, ink.text, { "text-anchor": "end" })];
  const estimated = estimate(row.points.map((point) => point.value));
  if (!estimated) return [...shapes, text(left + 8, y + 4, "nothing measured", ink.quiet)];
  if (row.target !== null) {
    shapes.push({
      ...line(at(row.target), y - 9, at(row.target), y + 9, ink.quiet, { "stroke-width": 2 }),
      title: `${plot.targetName}: ${plot.format(row.target)}`,
    });
  }
  if (estimated.half_width !== null) {
    shapes.push({
      ...line(at(estimated.mean - estimated.half_width), y, at(estimated.mean + estimated.half_width), y, colour, {
        "stroke-width": 5,
        "stroke-opacity": 0.35,
      }),
      title: `${row.label}, ${row.group}: 95 % interval of the mean, ± ${plot.format(estimated.half_width)}`,
    });
  }
  for (const point of row.points) {
    shapes.push({
      tag: "circle",
      title: `${row.label}, ${row.group}, seed ${point.seed}: ${plot.format(point.value)}`,
      attributes: {
        cx: round(at(point.value)),
        cy: y,
        r: estimated.count > 1 ? 3 : 5,
        fill: colour,
        "fill-opacity": estimated.count > 1 ? 0.55 : 1,
      },
    });
  }
  if (estimated.count > 1) {
    shapes.push({
      tag: "path",
      title: `${row.label}, ${row.group}: mean ${plot.format(estimated.mean)} over ${estimated.count} seeds`,
      attributes: { d: diamond(at(estimated.mean), y, 6.5), fill: colour, stroke: ink.paper, "stroke-width": 1.2 },
    });
  }
  return shapes;
}

function diamond(x: number, y: number, size: number): string {
  return `M${round(x - size)} ${y}L${round(x)} ${y - size}L${round(x + size)} ${y}L${round(x)} ${y + size}Z`;
}

/** One row for each run. */
export function dotRows(plot: DotPlot): (string | number | null)[][] {
  const rows = plot.rows.flatMap((row) => row.points.map((point) => [row.group, row.label, point.seed, point.value]));
  return [["flow", "protocol", "seed", plot.x.column], ...rows];
}
