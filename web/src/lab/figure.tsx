/** A plot with its heading, its lines or dots, and its exports. */
import type { ComponentChildren } from "preact";
import { h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Card } from "../shared/card.tsx";
import { Chart } from "../shared/chart.tsx";
import { Empty, Loading } from "../shared/notices.tsx";
import { theme } from "../shared/theme.ts";
import type { Rows } from "./csv.ts";
import type { DotPlot } from "./dot_plot.ts";
import { dotRows, drawDots } from "./dot_plot.ts";
import { inkOf, saveCsv, savePng, saveSvg } from "./export.ts";
import type { Axis, LinePlot } from "./line_plot.ts";
import { drawLines, lineRows } from "./line_plot.ts";
import type { Drawing, Ink } from "./shapes.ts";
import { DASHES, FONT } from "./shapes.ts";

export interface FigureProps {
  title: string;
  /** File name without ending. */
  name: string;
  draw: (ink: Ink) => Drawing;
  rows: () => Rows;
  /** Beside the heading. */
  tools?: ComponentChildren;
  wide?: boolean;
  note?: string | undefined;
  children: ComponentChildren;
}

/** A card around what is drawn, with its exports. */
export function Figure({ title, name, draw, rows, tools, wide, note, children }: FigureProps) {
  return (
    <Card
      title={title}
      class={`figure ${wide ? "wide" : ""}`}
      tools={
        <>
          {tools}
          <Exports title={title} name={name} draw={draw} rows={rows} />
        </>
      }
    >
      <div class="figure-body">{children}</div>
      {note ? <p class="figure-note quiet">{note}</p> : null}
    </Card>
  );
}

function Exports({ title, name, draw, rows }: Pick<FigureProps, "title" | "name" | "draw" | "rows">) {
  const button = (kind: string, save: () => void) => (
    <button class="export" title={`Save as ${kind}`} aria-label={`Save “${title}” as ${kind}`} onClick={save}>
      {kind}
    </button>
  );
  return (
    <div class="exports" role="group" aria-label={`Save “${title}”`}>
      {button("SVG", () => saveSvg(name, draw))}
      {button("PNG", () => void savePng(name, draw))}
      {button("CSV", () => saveCsv(name, rows()))}
    </div>
  );
}

/** A value of an axis with its unit; the unit is the end of the axis' label. */
function formatOf(axis: Axis): (value: number) => string {
  const unit = / in ([^,]+)/.exec(axis.label)?.[1] ?? "";
  return (value) => `${Number((value / axis.scale).toPrecision(4))} ${unit}`;
}

/** More lines than this cannot be distinguished. */
export const MOST_LINES = 40;

type LineFigureProps = Pick<FigureProps, "tools" | "note" | "wide"> & {
  plot: LinePlot;
  height?: number;
  isLoading?: boolean;
};

export function LineFigure({ plot, height = 220, isLoading, ...shown }: LineFigureProps) {
  const { times, values } = useMemo(() => aligned(plot), [plot]);
  return (
    <Figure
      title={plot.title}
      name={plot.name}
      draw={(ink) => drawLines(plot, ink)}
      rows={() => lineRows(plot)}
      {...shown}
    >
      {plot.lines.length > MOST_LINES ? (
        <Empty title={`${plot.lines.length} lines`}>
          Choose one flow, or fewer protocols or seeds, to tell them apart. The files have all of them.
        </Empty>
      ) : plot.lines.length === 0 && isLoading ? (
        <Loading what="series" />
      ) : plot.lines.length === 0 ? (
        <Empty title="Nothing was measured">None of the chosen runs has such values.</Empty>
      ) : (
        <div class="plot">
          <p class="quiet">
            {plot.y.label} over {plot.x.label}
          </p>
          <Chart
            label={`${plot.title}: ${plot.y.label} over ${plot.x.label}`}
            times={times}
            height={height}
            hasLegend
            format={formatOf(plot.y)}
            x={{ name: plot.x.label.split(/ in |,| \(/)[0] ?? "", format: formatOf(plot.x) }}
            atLeast={plot.atLeast}
            lines={plot.lines.map((line, index) => ({
              label: line.label,
              colour: line.series,
              dash: DASHES[line.series % DASHES.length] ?? [],
              values: values[index] ?? [],
            }))}
          />
        </div>
      )}
    </Figure>
  );
}

/** The lines over all their x together; what a line has no value for is spanned. */
function aligned(plot: LinePlot): { times: readonly number[]; values: readonly (readonly (number | null)[])[] } {
  const first = plot.lines[0]?.x ?? [];
  const isSame = plot.lines.every(
    (line) => line.x.length === first.length && line.x.every((x, index) => x === first[index]),
  );
  if (isSame) return { times: first, values: plot.lines.map((line) => line.y) };
  const [times = [], ...values] = uPlot.join(plot.lines.map((line) => distinctX(line.x, line.y)));
  return { times: times as number[], values: values as (number | null)[][] };
}

/** Points with one x, as where a distribution steps up, moved apart by less than can be seen. */
function distinctX(x: readonly number[], y: readonly (number | null)[]): uPlot.AlignedData {
  const least = Math.abs(x.at(-1) ?? 1) * 1e-9;
  let before = -Infinity;
  const apart = x.map((value) => {
    before = Math.max(value, before + least);
    return before;
  });
  return [apart, [...y]];
}

export function DotFigure({ plot, tools }: { plot: DotPlot; tools?: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    if (!place.current) return undefined;
    const resized = new ResizeObserver(([entry]) =>
      setWidth(Math.max(280, Math.round(entry?.contentRect.width ?? 640))),
    );
    resized.observe(place.current);
    return () => resized.disconnect();
  }, []);
  const current = theme.value;
  const ink = useMemo(() => inkOf("page"), [current]);
  return (
    <Figure
      title={plot.title}
      name={plot.name}
      draw={(light) => drawDots(plot, light)}
      rows={() => dotRows(plot)}
      tools={tools}
      note="Each dot is a run, the diamond their mean, the bar its 95 % interval. Point at one for its value."
    >
      <div ref={place}>
        {plot.rows.some((row) => row.points.length > 0) ? (
          <Shapes drawing={drawDots({ ...plot, title: "" }, ink, width)} label={plot.title} />
        ) : (
          <Empty title="Nothing was measured" />
        )}
      </div>
    </Figure>
  );
}

/** A drawing on the page. */
function Shapes({ drawing, label }: { drawing: Drawing; label: string }) {
  return (
    <svg
      class="shapes"
      viewBox={`0 0 ${drawing.width} ${drawing.height}`}
      width={drawing.width}
      height={drawing.height}
      role="img"
      aria-label={label}
      font-family={FONT}
    >
      {drawing.shapes.map((shape, index) =>
        h(
          shape.tag,
          { ...shape.attributes, key: index },
          shape.title ? <title>{shape.title}</title> : null,
          shape.text ?? null,
        ),
      )}
    </svg>
  );
}
