/** How the controller itself is: the figures of /metrics as small charts. */
import type { ComponentChildren } from "preact";
import { Chart, type Line } from "../shared/chart.tsx";
import { bytes, duration, percent, plural } from "../shared/format.ts";
import { Loading } from "../shared/notices.tsx";
import { type HealthSample, quantile } from "./history.ts";
import type { HistogramFigures } from "./rest.ts";
import { healthHistory, live } from "./store.ts";

function Panel({ title, now, children }: { title: string; now: string; children: ComponentChildren }) {
  return (
    <section class="health-panel">
      <header>
        <h3>{title}</h3>
        <b>{now}</b>
      </header>
      {children}
    </section>
  );
}

function mean(histogram: HistogramFigures): number | null {
  const count = histogram.counts.reduce((sum, each) => sum + each, 0);
  return count > 0 ? histogram.sum_s / count : null;
}

export function Health() {
  const now = live.value;
  if (!now) return <Loading what="figures" />;
  const samples = healthHistory.samples();
  const times = samples.map((sample) => sample.time_s);
  const line = (label: string, key: keyof HealthSample, colour: number): Line => ({
    label,
    colour,
    values: samples.map((sample) => sample[key]),
  });
  const last = samples.at(-1);
  const { figures } = now;
  const chart = (label: string, lines: Line[], format: (value: number) => string, atLeast: number) => (
    <Chart label={label} times={times} lines={lines} format={format} height={96} atLeast={atLeast} />
  );
  return (
    <div class="stack health">
      {samples.length < 2 ? (
        <p class="quiet">
          Charts begin when the page is opened; figures beside the titles are since the start of the controller where
          they say so.
        </p>
      ) : null}
      <Panel
        title="Request to installed"
        now={`median ${duration(quantile(figures.request_to_installed, 0.5))} since start`}
      >
        {chart(
          "Time from a request to its rules being installed: median and 95th percentile",
          [line("median", "installed_p50_s", 0), line("95 %", "installed_p95_s", 1)],
          duration,
          0.01,
        )}
      </Panel>
      <Panel title="Solve time" now={`mean ${duration(mean(figures.solve))} since start`}>
        {chart("Mean time of a solve", [line("mean", "solve_s", 0)], duration, 0.001)}
      </Panel>
      <Panel
        title="Events"
        now={last?.events_per_s === null || last === undefined ? "–" : `${last.events_per_s.toFixed(1)} /s`}
      >
        {chart(
          "Events sent to clients per second",
          [line("events", "events_per_s", 2)],
          (value) => `${value.toFixed(value < 10 ? 1 : 0)} /s`,
          1,
        )}
      </Panel>
      <Panel title="Processor" now={percent(last?.cpu_share)}>
        {chart("Share of a processor core that the controller uses", [line("cores", "cpu_share", 3)], percent, 0.1)}
      </Panel>
      <Panel title="Memory" now={bytes(figures.resident_bytes)}>
        {chart("Memory of the controller", [line("memory", "resident_bytes", 4)], bytes, 1)}
      </Panel>
      <Rules rules={now.rules} />
      <p class="quiet">
        {plural(figures.refused_requests, "request")} refused, {plural(figures.waiting_requests, "request")} waiting.
        All figures: <a href="/metrics">/metrics</a>. This page has parts under{" "}
        <a href="/page/licenses.txt">these licences</a>.
      </p>
    </div>
  );
}

const SHOWN = 12;

function Rules({ rules }: { rules: Record<string, number> }) {
  const most = Object.entries(rules).sort((a, b) => b[1] - a[1]);
  const top = Math.max(1, most[0]?.[1] ?? 1);
  return (
    <Panel
      title="Rules per switch"
      now={plural(
        most.reduce((sum, [, count]) => sum + count, 0),
        "rule",
      )}
    >
      <ul class="bars">
        {most.slice(0, SHOWN).map(([name, count]) => (
          <li key={name}>
            <span>{name}</span>
            <div class="meter" aria-hidden="true">
              <i style={{ width: `${(100 * count) / top}%` }} />
            </div>
            <span class="number">{count}</span>
          </li>
        ))}
      </ul>
      {most.length > SHOWN ? (
        <p class="quiet">
          The busiest {SHOWN} of {most.length} switches.
        </p>
      ) : null}
    </Panel>
  );
}
