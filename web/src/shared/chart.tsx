/** Lines over time, with values where the pointer is (uPlot, in the page's colours). */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "./format.ts";
import { theme, token } from "./theme.ts";

export interface Line {
  label: string;
  /** One for each time; null is a gap. */
  values: readonly (number | null)[];
  /** Which of the colours of series; as on the map. */
  colour: number;
  dashed?: boolean;
  /** Lengths of strokes and gaps in pixels; goes before `dashed`. */
  dash?: readonly number[];
}

const SERIES = 9;

export interface ChartProps {
  /** Says what is drawn, for who can't see it. */
  label: string;
  /** Seconds since 1970, or since a start with `isElapsed`. */
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  height?: number;
  /** The scale reaches at least from 0 to this. */
  atLeast?: number | undefined;
  isElapsed?: boolean;
  /** What `times` are if they are not times. */
  x?: { name: string; format: (value: number) => string };
  hasLegend?: boolean;
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [props.times, ...props.lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const shape = props.lines
    .map((line) => `${line.label}|${line.colour}|${line.dashed ?? false}|${line.dash?.join() ?? ""}`)
    .join("\n");
  const current = useRef(data);
  current.current = data;

  useEffect(() => {
    const container = place.current;
    if (!container) return undefined;
    const make = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, container.clientWidth || 300), current.current, container);
    };
    const unsubscribe = theme.subscribe(make);
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: container.clientWidth, height: props.height ?? 150 }),
    );
    resized.observe(container);
    return () => {
      unsubscribe();
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, props.height, props.hasLegend]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  // With the keyboard: the values at the next or the previous point.
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    const drawn = plot.current;
    if (step === undefined || !drawn || props.times.length === 0) return;
    event.preventDefault();
    const index = Math.min(props.times.length - 1, Math.max(0, (drawn.cursor.idx ?? -1) + step));
    drawn.setCursor({ left: drawn.valToPos(props.times[index] ?? 0, "x"), top: drawn.over.clientHeight / 2 });
  };
  return (
    <div
      class="chart"
      ref={place}
      role="img"
      tabIndex={0}
      aria-label={`${props.label}. Arrow keys show the values.`}
      onKeyDown={onKeyDown}
    />
  );
}

/** How the frame of a line's mark in the legend is drawn: solid, dashed or dotted as the line. */
function markerDash(line: Line | undefined): string {
  const stroke = line?.dash?.[0];
  return stroke === undefined ? (line?.dashed ? "dashed" : "solid") : stroke > 2 ? "dashed" : "dotted";
}

/** How the values of the x axis are written. */
function formatOfX(props: ChartProps): (value: number) => string {
  if (props.x) return props.x.format;
  return props.isElapsed ? (seconds) => `${Number(seconds.toFixed(2))} s` : clock;
}

function options(props: ChartProps, width: number): uPlot.Options {
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const formatX = formatOfX(props);
  const axis = { stroke: token("quiet"), font, grid: { stroke: token("line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: props.height ?? 150,
    legend: {
      show: props.hasLegend ?? false,
      live: true,
      markers: { width: 3, dash: (_plot, index) => markerDash(props.lines[index - 1]) },
    },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: !props.isElapsed && !props.x },
      y: { range: (_plot, _least, most) => [0, Math.max(most ?? 0, props.atLeast ?? 0) * 1.08 || 1] },
    },
    axes: [
      { ...axis, space: 70, size: 26, values: (_plot, ticks) => ticks.map(formatX) },
      { ...axis, size: 74, space: 32, gap: 6, values: (_plot, ticks) => ticks.map(props.format) },
    ],
    series: [
      { label: props.x?.name ?? "Time", value: (_plot, value) => (value === null ? "–" : formatX(value)) },
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: token(`series-${line.colour % SERIES}`),
        width: 1.75,
        ...(line.dash?.length ? { dash: [...line.dash] } : line.dashed ? { dash: [5, 4] } : {}),
        points: { show: false },
        value: (_plot: uPlot, value: number | null | undefined) =>
          value === null || value === undefined ? "–" : props.format(value),
      })),
    ],
  };
}
