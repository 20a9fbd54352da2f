/** The network of one run, scrubbed over time. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { bitrate, percent } from "../shared/format.ts";
import type { MapLink, MapPath, Selection } from "../shared/map.tsx";
import { MapLegend, NetworkMapView } from "../shared/map.tsx";
import { Loading, Notice } from "../shared/notices.tsx";
import { Table } from "../shared/table.tsx";
import { ALL_FLOWS, flowOf, runTitle } from "./choice.ts";
import { Figure, LineFigure } from "./figure.tsx";
import { drawMap, mapRows, utilisationAt } from "./map_plot.ts";
import { linkLines } from "./plots.ts";
import type { LinkResult, NetworkView, ResultsOverview, RunRow } from "./rest.ts";
import { useParts } from "./use_parts.ts";

const PLAY_MS = 200;

/** Links with the utilisation of their fuller direction. */
function mapLinks(network: NetworkView, utilisation: ReadonlyMap<string, number>): MapLink[] {
  return network.links.map(({ a, b }) => {
    const known = [utilisation.get(`${a}->${b}`), utilisation.get(`${b}->${a}`)].filter(
      (each): each is number => each !== undefined,
    );
    return { id: `${a}-${b}`, ends: [a, b], utilisation: known.length > 0 ? Math.max(...known) : null, up: true };
  });
}

interface Props {
  overview: ResultsOverview;
  index: number;
  runs: readonly RunRow[];
  run: RunRow;
  flow: string;
  onRun: (number: number) => void;
}

export function NetworkOverTime({ overview, index, runs, run, flow, onRun }: Props) {
  const { byRun, isLoading, failure } = useParts<LinkResult[]>(index, [run.number], "links");
  const links = byRun.get(run.number);
  const times = links?.find((link) => link.series)?.series?.time_s ?? [];
  const [at, setAt] = useState<number | null>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [isHighlighted, setHighlighted] = useState(false);
  const [selected, setSelected] = useState<Selection>(null);
  const interval = at === null || times.length === 0 ? null : Math.min(at, times.length - 1);

  useEffect(() => {
    if (!isPlaying || times.length === 0) return undefined;
    const timer = setInterval(() => setAt((now) => (now === null || now >= times.length - 1 ? 0 : now + 1)), PLAY_MS);
    return () => clearInterval(timer);
  }, [isPlaying, times.length]);

  const utilisation = useMemo(() => utilisationAt(links ?? [], interval), [links, interval]);
  const paths = useMemo(
    (): MapPath[] =>
      flow === ALL_FLOWS || !isHighlighted
        ? []
        : (flowOf(run, flow)?.allocated ?? []).map((each) => ({ nodes: each.path, rate_bps: each.rate_bps ?? 0 })),
    [run, flow, isHighlighted],
  );
  const when = interval === null ? "mean of the run" : `at ${Number((times[interval] ?? 0).toFixed(2))} s`;
  const plot = {
    name: `network-${run.case}-${run.protocol}-s${run.seed}${interval === null ? "" : `-${Number((times[interval] ?? 0).toFixed(2))}s`}`,
    title: `Utilisation, case ${run.case}, ${runTitle(run)}, ${when}`,
    network: overview.network,
    utilisation,
  };
  const chooser = (
    <>
      {flow === ALL_FLOWS ? null : (
        <label class="check">
          <input type="checkbox" checked={isHighlighted} onChange={() => setHighlighted(!isHighlighted)} />
          paths of flow {flow}
        </label>
      )}
      <label class="row">
        <span class="quiet">Run</span>
        <select value={String(run.number)} onChange={(event) => onRun(Number(event.currentTarget.value))}>
          {runs.map((each) => (
            <option key={each.number} value={String(each.number)}>
              {runTitle(each)}
              {each.valid ? "" : " (not valid)"}
            </option>
          ))}
        </select>
      </label>
    </>
  );
  return (
    <>
      <Figure
        title="Network over time"
        name={plot.name}
        wide
        draw={(ink) => drawMap(plot, ink)}
        rows={() => mapRows(plot)}
        tools={chooser}
      >
        {failure ? (
          <Notice tone="bad" title="The links of this run cannot be read">
            {failure}
          </Notice>
        ) : null}
        {!links && isLoading ? (
          <Loading what="the network" />
        ) : (
          <Utilisation
            network={overview.network}
            utilisation={utilisation}
            paths={paths}
            title={`Utilisation of the fuller direction, ${when}`}
            selected={selected}
            onSelect={setSelected}
          />
        )}
        {times.length > 0 ? (
          <div class="scrub">
            <button aria-pressed={isPlaying} onClick={() => setPlaying(!isPlaying)}>
              {isPlaying ? "Pause" : "Play"}
            </button>
            <input
              type="range"
              min={0}
              max={times.length - 1}
              value={interval ?? 0}
              aria-label="Time in the measurement"
              aria-valuetext={interval === null ? "mean of the run" : `${times[interval]} s`}
              onInput={(event) => {
                setPlaying(false);
                setAt(Number(event.currentTarget.value));
              }}
            />
            <output class="scrub-time">{interval === null ? "mean" : `${(times[interval] ?? 0).toFixed(2)} s`}</output>
            <button
              disabled={interval === null}
              onClick={() => {
                setPlaying(false);
                setAt(null);
              }}
            >
              Mean of the run
            </button>
          </div>
        ) : !links ? null : (
          <p class="figure-note quiet">This run has no series of its links: the map shows the mean.</p>
        )}
      </Figure>
      {selected?.kind === "link" && links ? (
        <LineFigure wide plot={linkLines(run, links, endsOf(overview.network, selected.id))} />
      ) : null}
    </>
  );
}

function endsOf(network: NetworkView, id: string): [string, string] {
  const link = network.links.find((each) => `${each.a}-${each.b}` === id);
  return link ? [link.a, link.b] : ["", ""];
}

interface UtilisationProps {
  network: NetworkView;
  /** By direction, as "S0->S4". */
  utilisation: ReadonlyMap<string, number>;
  title: string;
  paths?: readonly MapPath[];
  selected: Selection;
  onSelect: (selection: Selection) => void;
}

/** A map of the links' utilisation, with both directions of each as a table. */
export function Utilisation({ network, utilisation, title, paths = [], selected, onSelect }: UtilisationProps) {
  return (
    <div class="network">
      <div class="network-map">
        <NetworkMapView
          name={network.name}
          nodes={network.nodes.map(({ name, kind, x, y }) => ({ id: name, kind, x, y, state: "up" }))}
          links={mapLinks(network, utilisation)}
          paths={paths}
          selected={selected}
          onSelect={onSelect}
        />
        <MapLegend title={title} />
      </div>
      <Directions
        network={network}
        utilisation={utilisation}
        selected={selected?.kind === "link" ? selected.id : null}
        onSelect={(id) => onSelect({ kind: "link", id })}
      />
    </div>
  );
}

interface Direction {
  id: string;
  link: string;
  name: string;
  used: number | null;
  capacity_bps: number;
}

/** The utilisation of each direction as a table, beside the map. */
function Directions({
  network,
  utilisation,
  selected,
  onSelect,
}: {
  network: NetworkView;
  utilisation: ReadonlyMap<string, number>;
  selected: string | null;
  onSelect: (id: string) => void;
}) {
  const rows = network.links.flatMap((link): Direction[] =>
    [
      [link.a, link.b],
      [link.b, link.a],
    ].map(([tail, head]) => ({
      id: `${tail}->${head}`,
      link: `${link.a}-${link.b}`,
      name: `${tail} to ${head}`,
      used: utilisation.get(`${tail}->${head}`) ?? null,
      capacity_bps: link.rate_bps,
    })),
  );
  return (
    <Table
      label="Directions of links"
      rows={rows}
      id={(row) => row.id}
      selected={rows.find((row) => row.link === selected)?.id ?? null}
      onSelect={(row) => onSelect(row.link)}
      empty="The network has no links."
      columns={[
        { key: "link", title: "Link", width: "minmax(0, 1.4fr)", render: (row) => row.name, sort: (row) => row.name },
        {
          key: "used",
          title: "Utilisation",
          width: "88px",
          isNumber: true,
          render: (row) => percent(row.used),
          sort: (row) => row.used ?? -1,
        },
        {
          key: "rate",
          title: "Used",
          hint: "Wire rate",
          width: "104px",
          isNumber: true,
          render: (row) => bitrate(row.used === null ? null : row.used * row.capacity_bps),
          sort: (row) => (row.used ?? 0) * row.capacity_bps,
        },
      ]}
    />
  );
}
