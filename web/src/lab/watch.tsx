/** The current runs: their progress, what is measured at the moment, whether it would be valid, what is pending. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Card } from "../shared/card.tsx";
import { duration, percent, plural, remaining } from "../shared/format.ts";
import type { Selection } from "../shared/map.tsx";
import { Badge, Empty, Notice } from "../shared/notices.tsx";
import { LineFigure, MOST_LINES } from "./figure.tsx";
import type { LinePlot } from "./line_plot.ts";
import type { Live, LiveRun, RunState } from "./live.ts";
import { counts, timeLeft } from "./live.ts";
import { Utilisation } from "./network.tsx";
import { RATE, TIME } from "./plots.ts";
import type { NetworkView, WatchPlan } from "./rest.ts";
import { connection, plan, live as runsInHand } from "./session.ts";

const WORDS: Record<RunState, string> = {
  waiting: "pending",
  running: "running",
  valid: "valid",
  invalid: "not valid",
  failed: "failed",
};
const STATES = Object.keys(WORDS) as RunState[];
const MARKS: Record<RunState, string> = { waiting: "·", running: "▶", valid: "✓", invalid: "!", failed: "×" };

export function Watch({ network }: { network: NetworkView }) {
  const live = runsInHand.value;
  const wanted = plan.value;
  const [chosen, setChosen] = useState<number | null>(null);
  const now_s = useNow(live?.ended === null);
  if (!live || !wanted) return null;
  const running = [...live.runs.values()].filter((run) => run.state === "running");
  const shown = running.find((run) => run.number === chosen) ?? running[0];
  return (
    <section class="watch" aria-label="Current runs">
      <Headline live={live} wanted={wanted} now_s={now_s} />
      <Runs live={live} shown={shown?.number ?? null} onChoose={setChosen} />
      {shown ? <Now run={shown} wanted={wanted} network={network} now_s={now_s} /> : null}
    </section>
  );
}

/** The time, each second while something runs. */
function useNow(isRunning: boolean): number {
  const [now_s, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now_s;
}

function Headline({ live, wanted, now_s }: { live: Live; wanted: WatchPlan; now_s: number }) {
  const byState = counts(live);
  const ended = byState.valid + byState.invalid + byState.failed;
  const left = timeLeft(live, now_s);
  const link = connection.value;
  return (
    <div class="card headline">
      <div class="row">
        <h2>{live.ended ? ENDED[live.ended.state] : `${ended} of ${plural(live.runs.size, "run")} ended`}</h2>
        {byState.invalid > 0 ? <Badge tone="warn">{byState.invalid} not valid</Badge> : null}
        {byState.failed > 0 ? <Badge tone="bad">{byState.failed} failed</Badge> : null}
        <span class="spacer" />
        {live.ended ? null : (
          <span class="quiet" aria-live="off">
            {left === null ? "" : `about ${remaining(left)} left`}
          </span>
        )}
        {live.ended ? (
          <Badge tone={live.ended.state === "finished" ? "good" : "bad"}>over</Badge>
        ) : link.connected ? (
          <Badge tone="good">live</Badge>
        ) : (
          <Badge tone="bad">not connected</Badge>
        )}
      </div>
      <progress
        class="progress"
        max={live.runs.size}
        value={ended + partOfRunning(live, wanted)}
        aria-label="Runs that have ended"
      />
      {live.ended ? (
        <p class="quiet">
          {live.ended.text ? `${live.ended.text} ` : ""}To open these results again:{" "}
          <code>mstcp-lab browse {wanted.folder}</code>
        </p>
      ) : null}
      {!live.ended && !link.connected ? (
        <Notice tone="bad" title="The connection to mstcp-lab is lost">
          {link.reason}. What was measured meanwhile appears as soon as it answers; if it was ended, open its results
          with <code>mstcp-lab browse {wanted.folder}</code>.
        </Notice>
      ) : null}
    </div>
  );
}

const ENDED = {
  finished: "All runs have ended",
  failed: "The runs ended with a fault",
  stopped: "The runs were stopped",
};

function partOfRunning(live: Live, wanted: WatchPlan): number {
  const running = [...live.runs.values()].filter((run) => run.state === "running");
  return running.reduce((sum, run) => sum + Math.min(0.95, run.seconds / wanted.duration_s), 0);
}

/** Of more runs than this only the numbers are shown. */
const MOST_MARKED = 400;

function Runs({ live, shown, onChoose }: { live: Live; shown: number | null; onChoose: (number: number) => void }) {
  const rows = useMemo(() => rowsOf(live), [live]);
  const isMany = live.runs.size > MOST_MARKED;
  return (
    <Card
      title="Runs"
      class="runs"
      tools={
        <span class="runs-key quiet">
          {STATES.map((state) => (
            <span key={state}>
              <Mark state={state} />
              {WORDS[state]}
            </span>
          ))}
        </span>
      }
    >
      <div class="runs-body">
        {rows.map(({ name, runs }) => (
          <div class="runs-row" key={name}>
            <span class="runs-name">{name}</span>
            <span class="runs-marks">
              {isMany ? (
                <Counted runs={runs} />
              ) : (
                runs.map((run) => (
                  <RunMark key={run.number} run={run} isShown={run.number === shown} onChoose={onChoose} />
                ))
              )}
            </span>
          </div>
        ))}
      </div>
    </Card>
  );
}

function rowsOf(live: Live): { name: string; runs: LiveRun[] }[] {
  const rows = new Map<string, LiveRun[]>();
  for (const run of live.runs.values()) {
    const name = `case ${run.case}, ${run.protocol}`;
    rows.set(name, [...(rows.get(name) ?? []), run]);
  }
  return [...rows].map(([name, runs]) => ({ name, runs }));
}

/** How many runs are in each state. */
function Counted({ runs }: { runs: readonly LiveRun[] }) {
  const states = STATES.map((state) => ({ state, count: runs.filter((run) => run.state === state).length }));
  return (
    <>
      {states
        .filter(({ count }) => count > 0)
        .map(({ state, count }) => (
          <span class="counted" key={state}>
            <Mark state={state} />
            {count} {WORDS[state]}
          </span>
        ))}
    </>
  );
}

function Mark({ state }: { state: RunState }) {
  return (
    <i class={`run ${state}`} aria-hidden="true">
      {MARKS[state]}
    </i>
  );
}

function RunMark({ run, isShown, onChoose }: { run: LiveRun; isShown: boolean; onChoose: (number: number) => void }) {
  const again =
    run.repeated.length > 0 ? `; attempt ${run.repeated.length + 1}, before it: ${run.repeated.join("; ")}` : "";
  const words = `seed ${run.seed}: ${WORDS[run.state]}${run.kept ? " (reused)" : ""}${run.text ? `, ${run.text}` : ""}${again}`;
  if (run.state !== "running")
    return (
      <span class={`run ${run.state}`} role="img" title={words} aria-label={words}>
        {MARKS[run.state]}
      </span>
    );
  return (
    <button
      class="run running"
      title={words}
      aria-label={`Show ${words}`}
      aria-pressed={isShown}
      onClick={() => onChoose(run.number)}
    >
      {MARKS.running}
    </button>
  );
}

interface NowProps {
  run: LiveRun;
  wanted: WatchPlan;
  network: NetworkView;
  now_s: number;
}

const DEFAULT_ROUTED = "Streams without a path take the switches' default route, which is read at the end of the run.";

/** The run that is looked at. */
function Now({ run, wanted, network, now_s }: NowProps) {
  const title = `Case ${run.case} with ${run.protocol}, seed ${run.seed}`;
  const latest = run.samples.at(-1);
  const utilisation = useMemo(
    () => new Map(wanted.links.map((name, index): [string, number] => [name, latest?.links[index] ?? 0])),
    [latest],
  );
  const plot = useMemo(() => streamsNow(run, title), [run]);
  const [selected, setSelected] = useState<Selection>(null);
  const isDefaultRouted = run.flows.some((flow) => flow.streams.some((stream) => stream.path === null));
  const since = run.began_s === null ? null : Math.max(0, now_s - run.began_s);
  return (
    <>
      <Card
        title={title}
        class="now"
        tools={<Badge tone="plain">{wanted.clock === "simulated" ? "simulating" : run.phase || "starting"}</Badge>}
      >
        <div class="stack">
          {wanted.clock === "simulated" ? (
            <p class="quiet">
              Running for {since === null ? "–" : remaining(since)}. The simulator reports a run at its end: rates and
              links appear below then.
            </p>
          ) : (
            <>
              <div class="row">
                <progress class="progress" max={wanted.duration_s} value={run.seconds} aria-label="Measured" />
                <span class="quiet">
                  {run.seconds.toFixed(1)} of {wanted.duration_s} s measured
                  {wanted.clock === "virtual" ? ", in virtual time" : ""}
                </span>
              </div>
              <ValiditySoFar run={run} clock={wanted.clock} />
            </>
          )}
        </div>
      </Card>
      {wanted.clock === "simulated" ? null : latest ? (
        <div class="figures now-figures">
          <LineFigure wide plot={plot} height={240} note={isDefaultRouted ? DEFAULT_ROUTED : undefined} />
          <Card title="Links at the moment" class="figure wide">
            <Utilisation
              network={network}
              utilisation={utilisation}
              title="Utilisation of the fuller direction"
              selected={selected}
              onSelect={setSelected}
            />
          </Card>
        </div>
      ) : (
        <Empty title="Nothing is measured yet">
          The run is {run.phase || "starting"}; rates and links appear with its first bytes.
        </Empty>
      )}
    </>
  );
}

function ValiditySoFar({ run, clock }: { run: LiveRun; clock: WatchPlan["clock"] }) {
  const { validity } = run;
  if (clock === "virtual") return <p class="quiet">In virtual time the machine's load makes no run invalid.</p>;
  if (!validity) return <p class="quiet">Validity is checked once a second from the start of the measurement.</p>;
  const facts = `processor ${percent(validity.cpu_busy)} busy, packets at most ${duration(validity.lateness_max_us === null ? null : validity.lateness_max_us / 1e6)} late`;
  if (validity.problems.length === 0)
    return (
      <p>
        <Badge tone="good">valid so far</Badge> <span class="quiet">{facts}</span>
      </p>
    );
  return (
    <Notice tone="warn" title="Not valid if it ended now">
      {validity.problems.join("; ")} ({facts})
    </Notice>
  );
}

/** The rates of all streams so far. */
function streamsNow(run: LiveRun, title: string): LinePlot {
  const x = run.samples.map((sample) => sample.seconds);
  let series = 0;
  const flows = new Set([
    ...run.flows.map((flow) => flow.flow),
    ...run.samples.flatMap((sample) => Object.keys(sample.streams_bps)),
  ]);
  const lines = [...flows].flatMap((name) => {
    const streams = run.flows.find((flow) => flow.flow === name)?.streams ?? [];
    const count = Math.max(streams.length, ...run.samples.map((sample) => sample.streams_bps[name]?.length ?? 0));
    return Array.from({ length: count }, (_, index) => ({
      label: `flow ${name}: ${streams[index]?.path?.join(" → ") ?? `stream ${index + 1}`}`,
      series: series++,
      x,
      y: run.samples.map((sample) => sample.streams_bps[name]?.[index] ?? null),
    }));
  });
  const shown =
    lines.length <= MOST_LINES
      ? lines
      : [
          {
            label: `all ${lines.length} streams`,
            series: 0,
            x,
            y: x.map((_, index) => lines.reduce((sum, line) => sum + (line.y[index] ?? 0), 0)),
          },
        ];
  return {
    name: `now-${run.case}-${run.protocol}-s${run.seed}`,
    title: `Rates of the streams, ${title.toLowerCase()}`,
    x: TIME,
    y: RATE,
    lines: shown,
  };
}
