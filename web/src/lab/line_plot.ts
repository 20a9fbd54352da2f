/** Lines over a common quantity: what the page draws with uPlot, as a drawing for export and as rows. */

import type { Drawing, Ink, Shape } from "./shapes.ts";
import { DASHES, line, round, text, ticks } from "./shapes.ts";

export interface PlotLine {
  label: string;
  /** Which of the colours (and dashes) of series. */
  series: number;
  x: readonly number[];
  /** One for each of `x`; null is a gap. */
  y: readonly (number | null)[];
}

export interface Axis {
  /** Words with the unit: "goodput in Mbit/s". */
  label: string;
  /** Name of its column in CSV, with the unit: "goodput_bps". */
  column: string;
  /** What values are divided by to be in the label's unit. */
  scale: number;
}

export interface LinePlot {
  /** File name without ending. */
  name: string;
  title: string;
  x: Axis;
  y: Axis;
  lines: readonly PlotLine[];
  /** The y axis reaches at least to this. */
  atLeast?: number | undefined;
}

const MARGIN = { left: 62, right: 16, top: 34, bottom: 44 };
const LEGEND_LINE = 18;

/** The largest value of all lines. */
export function largest(plot: LinePlot, of: "x" | "y"): number {
  let most = of === "y" ? (plot.atLeast ?? 0) : 0;
  for (const each of plot.lines) for (const value of each[of]) if (value !== null && value > most) most = value;
  return most;
}

export function drawLines(plot: LinePlot, ink: Ink, width = 720, plotHeight = 260): Drawing {
  const legend = placeLegend(plot, width - MARGIN.left - MARGIN.right);
  const height = MARGIN.top + plotHeight + MARGIN.bottom + legend.rows * LEGEND_LINE + 6;
  const mostX = largest(plot, "x") || 1;
  const mostY = (largest(plot, "y") || plot.y.scale) * 1.05;
  const right = width - MARGIN.right;
  const bottom = MARGIN.top + plotHeight;
  const atX = (value: number): number => MARGIN.left + (value / mostX) * (right - MARGIN.left);
  const atY = (value: number): number => bottom - (value / mostY) * plotHeight;
  const shapes: Shape[] = [text(MARGIN.left, 20, plot.title, ink.text, { "font-weight": 650, "font-size": 13 })];
  for (const tick of ticks(0, mostY / plot.y.scale, 5)) {
    const y = atY(tick * plot.y.scale);
    shapes.push(
      line(MARGIN.left, y, right, y, ink.line),
      text(MARGIN.left - 7, y + 4, label(tick), ink.quiet, { "text-anchor": "end", "font-size": 11 }),
    );
  }
  for (const tick of ticks(0, mostX / plot.x.scale, 8)) {
    const x = atX(tick * plot.x.scale);
    shapes.push(
      line(x, bottom, x, bottom + 4, ink.quiet),
      text(x, bottom + 17, label(tick), ink.quiet, { "text-anchor": "middle", "font-size": 11 }),
    );
  }
  shapes.push(line(MARGIN.left, bottom, right, bottom, ink.quiet));
  shapes.push(text((MARGIN.left + right) / 2, bottom + 36, plot.x.label, ink.text, { "text-anchor": "middle" }));
  const middle = MARGIN.top + plotHeight / 2;
  shapes.push(
    text(14, middle, plot.y.label, ink.text, { "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }),
  );
  for (const each of plot.lines) {
    shapes.push({
      tag: "path",
      title: each.label,
      attributes: { d: pathOf(each, atX, atY), ...strokeOf(each.series, ink), fill: "none" },
    });
  }
  return { width, height, title: plot.title, shapes: [...shapes, ...drawLegend(plot, legend, bottom + 54, ink)] };
}

/** The stroke of a series: colour and dashes. */
function strokeOf(series: number, ink: Ink): Record<string, string | number> {
  const dashes = DASHES[series % DASHES.length] ?? [];
  return {
    stroke: ink.series[series % ink.series.length] ?? ink.text,
    "stroke-width": 1.8,
    "stroke-linejoin": "round",
    ...(dashes.length > 0 ? { "stroke-dasharray": dashes.join(" ") } : {}),
  };
}

function pathOf(each: PlotLine, atX: (value: number) => number, atY: (value: number) => number): string {
  let path = "";
  let isDrawing = false;
  each.x.forEach((x, index) => {
    const y = each.y[index];
    if (y === null || y === undefined) {
      isDrawing = false;
      return;
    }
    path += `${isDrawing ? "L" : "M"}${round(atX(x))} ${round(atY(y))}`;
    isDrawing = true;
  });
  return path;
}

interface Legend {
  rows: number;
  places: { x: number; row: number }[];
}

function placeLegend(plot: LinePlot, room: number): Legend {
  let x = 0;
  let row = 0;
  const places = plot.lines.map((each) => {
    const width = 44 + each.label.length * 7;
    if (x > 0 && x + width > room) {
      x = 0;
      row += 1;
    }
    const place = { x, row };
    x += width;
    return place;
  });
  return { rows: plot.lines.length > 0 ? row + 1 : 0, places };
}

function drawLegend(plot: LinePlot, legend: Legend, top: number, ink: Ink): Shape[] {
  return plot.lines.flatMap((each, index) => {
    const { x, row } = legend.places[index] ?? { x: 0, row: 0 };
    const left = MARGIN.left + x;
    const y = top + row * LEGEND_LINE;
    return [line(left, y, left + 26, y, "", strokeOf(each.series, ink)), text(left + 32, y + 4, each.label, ink.text)];
  });
}

function label(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6, useGrouping: false });
}

/** One row for each value, in the document's own units and with all digits; gaps are empty. */
export function lineRows(plot: LinePlot): (string | number | null)[][] {
  const rows = plot.lines.flatMap((each) => each.x.map((x, index) => [each.label, x, each.y[index] ?? null]));
  return [["line", plot.x.column, plot.y.column], ...rows];
}
