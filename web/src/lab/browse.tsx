/** Finished results: what is chosen of them, its figures and plots. */
import { useMemo, useState } from "preact/hooks";
import { Card } from "../shared/card.tsx";
import { Facts } from "../shared/facts.tsx";
import { plural } from "../shared/format.ts";
import { Badge, Empty, Notice } from "../shared/notices.tsx";
import type { Choice } from "./choice.ts";
import {
  ALL_FLOWS,
  casesOf,
  chosenRuns,
  firstChoice,
  flowOf,
  flowsOf,
  flowTitle,
  protocolsOf,
  runsOfCase,
  runTitle,
  seedsOf,
  shownRun,
  toggled,
} from "./choice.ts";
import { DotFigure, LineFigure } from "./figure.tsx";
import { NetworkOverTime } from "./network.tsx";
import type { DelayKind } from "./plots.ts";
import {
  completionDistribution,
  DELAY_KINDS,
  delayDistribution,
  delayDots,
  delayLines,
  goodputDots,
  goodputLines,
  MOST_ROWS,
  seriesOf,
  streamLines,
} from "./plots.ts";
import type { EnvironmentView, FlowPart, ResultsOverview, RunRow } from "./rest.ts";
import { DASHES } from "./shapes.ts";
import { Summary } from "./summary.tsx";
import { useParts } from "./use_parts.ts";

/** More runs than this are not drawn over time at once. */
const MOST_DRAWN = 60;

export function Browse({ overview, index }: { overview: ResultsOverview; index: number }) {
  const [choice, setChoice] = useState<Choice>(() => firstChoice(overview));
  const current = casesOf(overview).includes(choice.case) ? choice : { ...choice, case: casesOf(overview)[0] ?? "" };
  const runs = useMemo(() => chosenRuns(overview, current), [overview, choice]);
  if (overview.runs.length === 0) return <Empty title="No run has ended yet">Results appear here one by one.</Empty>;
  return (
    <div class="browse">
      <Chooser overview={overview} choice={current} onChange={setChoice} />
      <div class="figures">
        <Validity overview={overview} choice={current} />
        {runs.length === 0 ? (
          <Empty title="No run is chosen">Choose at least one protocol and one seed.</Empty>
        ) : (
          <Chosen overview={overview} index={index} runs={runs} choice={current} onChange={setChoice} />
        )}
      </div>
    </div>
  );
}

function Chooser({
  overview,
  choice,
  onChange,
}: {
  overview: ResultsOverview;
  choice: Choice;
  onChange: (choice: Choice) => void;
}) {
  const runs = runsOfCase(overview, choice);
  const flows = flowsOf(runs);
  const seeds = seedsOf(runs);
  return (
    <form class="chooser card" aria-label="What is shown" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span class="field-label">Case</span>
        <select
          value={choice.case}
          onChange={(event) => onChange({ ...choice, case: event.currentTarget.value, flow: ALL_FLOWS, run: null })}
        >
          {casesOf(overview).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="field-label">Flow</span>
        <select value={choice.flow} onChange={(event) => onChange({ ...choice, flow: event.currentTarget.value })}>
          <option value={ALL_FLOWS}>all flows</option>
          {flows.map((name) => (
            <option key={name} value={name}>
              {titleOf(runs, name)}
            </option>
          ))}
        </select>
      </label>
      <fieldset>
        <legend>Protocols</legend>
        {protocolsOf(runs).map((name) => (
          <Check
            key={name}
            label={name}
            isOn={!choice.withoutProtocols.has(name)}
            series={seriesOf(overview.looks, name)}
            onToggle={() => onChange({ ...choice, withoutProtocols: toggled(choice.withoutProtocols, name) })}
          />
        ))}
      </fieldset>
      {seeds.length > 1 ? (
        <fieldset class="seeds">
          <legend>Seeds</legend>
          {seeds.map((seed) => (
            <Check
              key={seed}
              label={String(seed)}
              isOn={!choice.withoutSeeds.has(seed)}
              onToggle={() => onChange({ ...choice, withoutSeeds: toggled(choice.withoutSeeds, seed) })}
            />
          ))}
          <Check
            label="a line for each seed"
            isOn={choice.isEachSeed}
            onToggle={() => onChange({ ...choice, isEachSeed: !choice.isEachSeed })}
          />
        </fieldset>
      ) : null}
    </form>
  );
}

function titleOf(runs: readonly RunRow[], name: string): string {
  const flow = runs.map((run) => flowOf(run, name)).find((each) => each !== undefined);
  return flow ? flowTitle(flow) : name;
}

function Check({
  label,
  isOn,
  onToggle,
  series,
}: {
  label: string;
  isOn: boolean;
  onToggle: () => void;
  series?: number;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={onToggle} />
      {series === undefined ? null : (
        <svg class="key" viewBox="0 0 26 8" width="26" height="8" aria-hidden="true">
          <line
            x1="0"
            x2="26"
            y1="4"
            y2="4"
            style={{ stroke: `var(--series-${series})` }}
            stroke-width="3"
            stroke-dasharray={(DASHES[series % DASHES.length] ?? []).join(" ")}
          />
        </svg>
      )}
      <span>{label}</span>
    </label>
  );
}

function Validity({ overview, choice }: { overview: ResultsOverview; choice: Choice }) {
  const runs = runsOfCase(overview, choice);
  const invalid = runs.filter((run) => !run.valid);
  const again = runs.filter((run) => run.earlier_attempts.length > 0);
  if (invalid.length === 0 && again.length === 0)
    return (
      <p class="quiet">
        <Badge tone="good">valid</Badge> {plural(runs.length, "run")} of {runs[0]?.duration_s ?? 0} s, engine{" "}
        {overview.engine}.
      </p>
    );
  return (
    <Notice
      tone={invalid.length > 0 ? "warn" : "plain"}
      title={
        invalid.length > 0
          ? `${invalid.length} of ${plural(runs.length, "run")} not valid`
          : `${plural(again.length, "run")} made more than once`
      }
    >
      {invalid.length > 0
        ? "They are left out wherever the protocol has valid ones."
        : "Earlier attempts were not valid."}
      <details>
        <summary>Which, and why</summary>
        <ul>
          {[
            ...invalid.map((run) => [run, run.why_invalid] as const),
            ...again.map((run) => [run, run.earlier_attempts.flat()] as const),
          ].map(([run, why], position) => (
            <li key={position}>
              {runTitle(run)}: {why.join("; ")}
            </li>
          ))}
        </ul>
      </details>
    </Notice>
  );
}

interface ChosenProps {
  overview: ResultsOverview;
  index: number;
  runs: readonly RunRow[];
  choice: Choice;
  onChange: (choice: Choice) => void;
}

function Chosen({ overview, index, runs, choice, onChange }: ChosenProps) {
  const [kind, setKind] = useState<DelayKind>("mean");
  const drawn = runs.slice(0, MOST_DRAWN);
  const series = useParts<FlowPart[]>(
    index,
    drawn.map((run) => run.number),
    "flows",
  );
  const run = shownRun(runs, choice);
  const context = { case: choice.case, runs, looks: overview.looks, flow: choice.flow };
  const goodput = goodputDots(context);
  const overTime = { context, series: series.byRun, isEachSeed: choice.isEachSeed };
  const plots = useMemo(
    () => [goodputLines(overTime), delayLines(overTime), delayDistribution(overTime), completionDistribution(overTime)],
    [runs, choice, series.byRun],
  );
  const [goodputTime, delayTime, delayShare, completions] = plots;
  const kinds = (
    <select aria-label="Which delay" value={kind} onChange={(event) => setKind(event.currentTarget.value as DelayKind)}>
      {Object.entries(DELAY_KINDS).map(([id, words]) => (
        <option key={id} value={id}>
          {words}
        </option>
      ))}
    </select>
  );
  return (
    <>
      <Summary runs={runs} flow={choice.flow} name={choice.case} />
      {goodput.rows.length <= MOST_ROWS ? (
        <>
          <DotFigure plot={goodput} />
          <DotFigure plot={delayDots(context, kind)} tools={kinds} />
        </>
      ) : (
        <Notice title={`${flowsOf(runs).length} flows`}>Choose one of them to see its runs side by side.</Notice>
      )}
      {series.failure ? (
        <Notice tone="bad" title="The series cannot be read">
          {series.failure}. Is mstcp-lab still running? Start it again and reload the page.
        </Notice>
      ) : null}
      {runs.length > MOST_DRAWN ? (
        <Notice title={`${MOST_DRAWN} of ${runs.length} runs are drawn over time`}>
          Choose fewer protocols or seeds to see the others.
        </Notice>
      ) : null}
      {goodputTime ? <LineFigure plot={goodputTime} isLoading={series.isLoading} /> : null}
      {delayTime ? <LineFigure plot={delayTime} isLoading={series.isLoading} /> : null}
      {delayShare ? (
        <LineFigure
          plot={delayShare}
          isLoading={series.isLoading}
          note="Of all bytes of the flows and seeds that are chosen."
        />
      ) : null}
      {completions && completions.lines.length > 0 ? <LineFigure plot={completions} /> : null}
      {run ? (
        <LineFigure
          plot={streamLines(run, series.byRun.get(run.number) ?? [], choice.flow)}
          isLoading={series.isLoading}
          note="Of the run that is chosen below."
        />
      ) : null}
      {run ? (
        <NetworkOverTime
          overview={overview}
          index={index}
          runs={runs}
          run={run}
          flow={choice.flow}
          onRun={(number) => onChange({ ...choice, run: number })}
        />
      ) : null}
      <Origin overview={overview} />
    </>
  );
}

function environmentText({ kernel, machine, cpus, git_revision, versions }: EnvironmentView): string {
  const revision = git_revision ? `, revision ${git_revision.slice(0, 12)}` : "";
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `kernel ${kernel}, ${machine}, ${plural(cpus, "core")}${revision}; ${programs.join(", ")}`;
}

/** Where and with what the results were made. */
function Origin({ overview }: { overview: ResultsOverview }) {
  const { network } = overview;
  const variant = overview.variant ? `, variant ${overview.variant}` : "";
  const changed = Object.entries(overview.overrides).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return (
    <Card title="How it was made" class="figure wide">
      <div class="stack">
        <Facts
          facts={[
            ["Results", <span class="mono">{overview.source}</span>],
            ["Engine", overview.engine],
            [
              "Network",
              `${network.name}${variant}: ${plural(network.nodes.length, "node")}, ${plural(network.links.length, "link")}`,
            ],
            ["Changed by --set", changed.join(", ") || "nothing"],
            ...overview.environments.map(
              (each, index) => [index > 0 ? `Environment ${index + 1}` : "Environment", environmentText(each)] as const,
            ),
          ]}
        />
      </div>
    </Card>
  );
}
