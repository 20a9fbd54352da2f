/** Lines over time, with values where the pointer is (uPlot, in the page's colours). */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme, token } from "./theme.ts";

export interface Line {
  label: string;
  /** One for each time; null is a gap. */
  values: readonly (number | null)[];
  /** Which of the colours of series; as on the map. */
  colour: number;
  dashed?: boolean;
}

export interface ChartProps {
  /** Says what is drawn, for who can't see it. */
  label: string;
  /** Seconds since 1970, or since a start with `isElapsed`. */
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  height?: number;
  /** The scale reaches at least from 0 to this. */
  atLeast?: number;
  isElapsed?: boolean;
  hasLegend?: boolean;
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [props.times, ...props.lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const shape = props.lines.map((line) => `${line.label}|${line.colour}|${line.dashed ?? false}`).join("\n");
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
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: container.clientWidth, height: props.height ?? 150 }));
    resized.observe(container);
    return () => { unsubscribe(); resized.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, [shape, props.height, props.hasLegend]);
  useEffect(() => { plot.current?.setData(data); });
  return <div class="chart" ref={place} role="img" aria-label={props.label} />;
}

function options(props: ChartProps, width: number): uPlot.Options {
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: token("quiet"), font, grid: { stroke: token("line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: props.height ?? 150,
    legend: { show: props.hasLegend ?? false, live: true },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: !props.isElapsed },
      y: { range: (_plot, _least, most) => [0, Math.max(most ?? 0, props.atLeast ?? 0) * 1.08 || 1] },
    },
    axes: [
      { ...axis, space: 70, size: 26, ...(props.isElapsed ? { values: (_: uPlot, ticks: number[]) => ticks.map((tick) => `${tick} s`) } : { values: (_: uPlot, ticks: number[]) => ticks.map(timeOfDay) }) },
      { ...axis, size: 74, space: 32, gap: 6, values: (_plot, ticks) => ticks.map(props.format) },
    ],
    series: [
      { label: "Time", value: (_plot, time) => (time === null ? "–" : props.isElapsed ? `${time.toFixed(2)} s` : timeOfDay(time)) },
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: token(`series-${line.colour % 6}`),
        width: 1.75,
        ...(line.dashed ? { dash: [5, 4] } : {}),
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : props.format(value)),
      })),
    ],
  };
}

function timeOfDay(time_s: number): string {
  return new Date(time_s * 1000).toTimeString().slice(0, 8);
}
