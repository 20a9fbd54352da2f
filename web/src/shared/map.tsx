/** A network as a map: places that can be dragged and are kept, links by utilisation, highlighted paths. */
import cytoscape from "cytoscape";
import { useEffect, useRef } from "preact/hooks";
import { bitrate } from "./format.ts";
import { theme, token } from "./theme.ts";
import { LEVELS, levelOf } from "./utilisation.ts";

export interface MapNode {
  id: string;
  kind: "host" | "switch";
  x: number;
  /** Upwards, as in the topology files. */
  y: number;
  state: "up" | "away" | "down";
}

/** A link, both directions together; its id is "S0-S4". */
export interface MapLink {
  id: string;
  ends: readonly [string, string];
  /** Of the fuller direction; null: not known. */
  utilisation: number | null;
  up: boolean;
}

export interface MapPath {
  nodes: readonly string[];
  rate_bps: number;
}

export type Selection = { kind: "flow" | "link" | "node"; id: string } | null;

export interface MapProps {
  /** Names the network: its places are kept under this. */
  name: string;
  nodes: readonly MapNode[];
  links: readonly MapLink[];
  /** Paths that are highlighted; all else is dimmed. */
  paths?: readonly MapPath[];
  selected?: Selection;
  onSelect?: (selection: Selection) => void;
}

/** Above this, nodes are dots and names appear when one comes near. */
const MANY = 150;
const SPAN = 1000;
/** Below this width the buttons have a row under the network, else a column beside it. */
const NARROW_PX = 500;
const BUTTONS_PX = 32;
/** The zoom from which names in a large network can be read. */
const NEAR = 1.3;

interface Kept {
  places: Record<string, { x: number; y: number }>;
  zoom: number | null;
  pan: { x: number; y: number } | null;
}

function read(key: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null") as Kept | null;
    if (kept && typeof kept.places === "object") return kept;
  } catch {
    // What is there is none of ours: begin again.
  }
  return { places: {}, zoom: null, pan: null };
}

/** By how much more nodes stand apart in a small network, so that the two nearest do not overlap. */
function spread(nodes: readonly MapNode[], span: number): number {
  if (nodes.length > MANY) return 1;
  const distances = nodes.flatMap((a, index) => nodes.slice(index + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
  return Math.min(1.7, Math.max(1, span / 9 / Math.max(Math.min(...distances), span / 100)));
}

/** The map itself; draws only what has changed. */
class NetworkMap {
  readonly cy: cytoscape.Core;
  #key: string;
  #kept: Kept;
  #classes: ReadonlyMap<string, string> = new Map();
  #paths = "";
  #container: HTMLElement;
  #isLarge: boolean;
  #naming: ReturnType<typeof setTimeout> | undefined;
  #saving: ReturnType<typeof setTimeout> | undefined;
  #resized: ResizeObserver;
  #size = { width: 0, height: 0 };
  onSelect: (selection: Selection) => void = () => {};

  constructor(container: HTMLElement, props: MapProps) {
    this.#key = `mstcp.map.${props.name}`;
    this.#kept = read(this.#key);
    this.#container = container;
    this.#isLarge = props.nodes.length > MANY;
    this.cy = cytoscape({
      container,
      elements: this.#elements(props),
      style: styleSheet(this.#isLarge),
      layout: { name: "preset" },
      minZoom: 0.05,
      maxZoom: 6,
      boxSelectionEnabled: false,
      autounselectify: true,
      textureOnViewport: this.#isLarge,
      hideEdgesOnViewport: false,
      pixelRatio: this.#isLarge ? 1 : "auto",
    });
    if (this.#kept.zoom !== null && this.#kept.pan !== null)
      this.cy.viewport({ zoom: this.#kept.zoom, pan: this.#kept.pan });
    else this.fit();
    this.#listen(container);
    this.cy.one("render", () => performance.mark("map drawn"));
    this.#resized = new ResizeObserver(() => this.#resize());
    this.#resized.observe(container);
  }

  #elements(props: MapProps): cytoscape.ElementDefinition[] {
    const xs = props.nodes.map((node) => node.x);
    const ys = props.nodes.map((node) => node.y);
    const left = Math.min(...xs);
    const top = Math.max(...ys);
    // Maps are about twice as wide as high; all of a network is seen at a zoom of about 1.
    const span = Math.max(Math.max(...xs) - left, 2 * (top - Math.min(...ys))) || 1;
    const size = SPAN * Math.min(1, Math.max(0.45, Math.sqrt(props.nodes.length / 40))) * spread(props.nodes, span);
    const classes = classesOf(props);
    const nodes = props.nodes.map((node) => ({
      group: "nodes" as const,
      data: { id: node.id, label: node.id },
      position: this.#kept.places[node.id] ?? { x: ((node.x - left) / span) * size, y: ((top - node.y) / span) * size },
      classes: classes.get(node.id) ?? "",
    }));
    const links = props.links.map((link) => ({
      group: "edges" as const,
      data: { id: link.id, source: link.ends[0], target: link.ends[1] },
      classes: classes.get(link.id) ?? "",
    }));
    this.#classes = classes;
    return [...nodes, ...links];
  }

  #listen(container: HTMLElement): void {
    this.cy.on("tap", (event) => {
      const target = event.target as cytoscape.SingularElementReturnValue | cytoscape.Core;
      if (target === this.cy) this.onSelect(null);
      else if ((target as cytoscape.NodeSingular).isNode())
        this.onSelect({ kind: "node", id: (target as cytoscape.NodeSingular).id() });
      else
        this.onSelect({
          kind: "link",
          id:
            ((target as cytoscape.EdgeSingular).data("link") as string | undefined) ??
            (target as cytoscape.EdgeSingular).id(),
        });
    });
    this.cy.on("mouseover mouseout", "node, edge", (event) => {
      container.style.cursor = event.type === "mouseover" ? "pointer" : "";
    });
    this.cy.on("dragfree", "node", (event) => {
      const node = event.target as cytoscape.NodeSingular;
      this.#kept.places[node.id()] = { ...node.position() };
      this.#keep();
    });
    this.cy.on("dragpan pinchzoom scrollzoom", () => this.#keepView());
    if (this.#isLarge)
      this.cy.on("viewport", () => {
        clearTimeout(this.#naming);
        this.#naming = setTimeout(() => this.#nameNear(), 120);
      });
  }

  /** Show the names of the nodes in sight once one is near enough to read them. */
  #nameNear(): void {
    const { x1, x2, y1, y2 } = this.cy.extent();
    const isNear = this.cy.zoom() >= NEAR;
    this.cy.batch(() =>
      this.cy.nodes().forEach((node) => {
        const { x, y } = node.position();
        const isNamed = isNear && x >= x1 && x <= x2 && y >= y1 && y <= y2;
        if (isNamed !== node.hasClass("named")) node.toggleClass("named", isNamed);
      }),
    );
  }

  #keepView(): void {
    this.#kept.zoom = this.cy.zoom();
    this.#kept.pan = { ...this.cy.pan() };
    this.#keep();
  }

  #keep(): void {
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => {
      try {
        localStorage.setItem(this.#key, JSON.stringify(this.#kept));
      } catch {
        // Storage that is full or forbidden keeps no places.
      }
    }, 300);
  }

  #resize(): void {
    const { width, height } = this.#container.getBoundingClientRect();
    const grew =
      this.#size.width > 0 && (Math.abs(width - this.#size.width) > 40 || Math.abs(height - this.#size.height) > 40);
    const appeared = this.#size.width === 0 && width > 0;
    this.#size = { width, height };
    this.cy.resize();
    if ((grew || appeared) && this.#kept.zoom === null) this.fit();
  }

  fit(): void {
    // cytoscape's own fit measures every line and name; the places of the nodes are enough.
    const places = this.cy.nodes().map((node) => node.position());
    const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const isNarrow = this.cy.width() < NARROW_PX;
    const room = isNarrow || this.#isLarge ? 24 : 56;
    const width = Math.max(1, this.cy.width() - 2 * room - (isNarrow ? 0 : BUTTONS_PX));
    const height = Math.max(1, this.cy.height() - 2 * room - (isNarrow ? BUTTONS_PX : 0));
    const zoom = Math.min(1.4, width / Math.max(1, right - left), height / Math.max(1, bottom - top));
    this.cy.viewport({
      zoom,
      pan: { x: room + width / 2 - (zoom * (left + right)) / 2, y: room + height / 2 - (zoom * (top + bottom)) / 2 },
    });
  }

  /** Show all, with this view kept no more. */
  showAll(): void {
    this.#kept.zoom = this.#kept.pan = null;
    this.fit();
    this.#keep();
  }

  zoomBy(factor: number): void {
    this.cy.zoom({
      level: this.cy.zoom() * factor,
      renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 },
    });
    this.#keepView();
  }

  panBy(x: number, y: number): void {
    this.cy.panBy({ x, y });
    this.#keepView();
  }

  restyle(): void {
    this.cy.style(styleSheet(this.#isLarge));
  }

  /** Show states, utilisations, paths and what is selected. */
  update(props: MapProps): void {
    const wanted = classesOf(props);
    this.cy.batch(() => {
      for (const [id, classes] of wanted) {
        if (this.#classes.get(id) === classes) continue;
        const element = this.cy.getElementById(id);
        element.classes(element.hasClass("named") ? `${classes} named` : classes);
      }
    });
    this.#classes = wanted;
    this.#highlight(props.paths ?? []);
  }

  #highlight(paths: readonly MapPath[]): void {
    const drawn = JSON.stringify(paths.map((path) => [path.nodes, bitrate(path.rate_bps)]));
    if (drawn === this.#paths) return;
    this.#paths = drawn;
    this.cy.batch(() => {
      this.cy.edges(".highlighted").remove();
      this.cy.add(paths.flatMap((path, index) => this.#pathEdges(path, index, paths.length)));
    });
  }

  /** The arrows of one path beside those of the others, with the rate where there is most room for it. */
  #pathEdges(path: MapPath, index: number, count: number): cytoscape.ElementDefinition[] {
    const steps = path.nodes.slice(1).map((head, step) => ({ tail: path.nodes[step] ?? head, head }));
    const lengths = steps.map(({ tail, head }) => this.#distance(tail, head));
    const roomiest = lengths.indexOf(Math.max(...lengths));
    return steps.map(({ tail, head }, step) => ({
      group: "edges",
      data: {
        id: `path ${index} ${step}`,
        source: tail,
        target: head,
        link: this.#linkId(tail, head),
        // Bent to one side, seen along the path: another path over the same link stays beside it.
        bend: (index - (count - 1) / 2) * (this.#isLarge ? 6 : 22),
        rate: step === roomiest ? bitrate(path.rate_bps) : "",
      },
      classes: `highlighted series-${index % 6}`,
    }));
  }

  #distance(one: string, other: string): number {
    const a = this.cy.getElementById(one).position();
    const b = this.cy.getElementById(other).position();
    return Math.hypot(a.x - b.x, a.y - b.y);
  }

  #linkId(a: string, b: string): string {
    return this.#classes.has(`${a}-${b}`) ? `${a}-${b}` : `${b}-${a}`;
  }

  destroy(): void {
    clearTimeout(this.#saving);
    clearTimeout(this.#naming);
    this.#resized.disconnect();
    this.cy.destroy();
  }
}

function isSelected(selected: Selection | undefined, kind: "node" | "link", id: string): string {
  return selected?.kind === kind && selected.id === id ? "selected" : "";
}

/** How each node and link is drawn: what style.css classes are to a page. */
function classesOf(props: MapProps): Map<string, string> {
  // Dimming a large network would touch all of it, and its lines are thin.
  const onPath = new Set(props.nodes.length > MANY ? [] : (props.paths ?? []).flatMap((path) => path.nodes));
  const join = (...classes: string[]): string => classes.filter(Boolean).join(" ");
  const all = new Map<string, string>();
  for (const node of props.nodes)
    all.set(
      node.id,
      join(
        node.kind,
        node.state,
        onPath.size > 0 && !onPath.has(node.id) ? "dim" : "",
        isSelected(props.selected, "node", node.id),
      ),
    );
  for (const link of props.links) {
    const use = link.utilisation === null ? "unknown" : `use-${levelOf(link.utilisation)}`;
    all.set(
      link.id,
      join("link", link.up ? use : "broken", onPath.size > 0 ? "dim" : "", isSelected(props.selected, "link", link.id)),
    );
  }
  return all;
}

function styleSheet(many: boolean): cytoscape.StylesheetJson {
  const font = getComputedStyle(document.body).fontFamily;
  const size = many ? 6 : 38;
  const series = [0, 1, 2, 3, 4, 5].map((index) => ({
    selector: `.series-${index}`,
    style: { "line-color": token(`series-${index}`), "target-arrow-color": token(`series-${index}`) },
  }));
  const uses = LEVELS.map(({ width }, level) => ({
    selector: `.use-${level}`,
    style: { "line-color": token(`use-${level}`), width: width * (many ? 0.55 : 1) },
  }));
  return [
    {
      selector: "node",
      style: {
        label: many ? "" : "data(label)",
        "font-family": font,
        "font-size": many ? 7 : 12,
        "font-weight": 600,
        "min-zoomed-font-size": 7,
        color: token("text"),
        "text-valign": many ? "bottom" : "center",
        "text-halign": "center",
        "text-margin-y": many ? 1.5 : 0,
        "text-outline-width": many ? 1 : 0,
        "text-outline-color": token("surface"),
        width: size,
        height: size,
        "background-color": token("raised"),
        "border-width": many ? 1 : 2,
        "border-color": token("quiet"),
        "overlay-opacity": 0,
        "z-index": 10,
      },
    },
    { selector: ".named", style: { label: "data(label)" } },
    {
      selector: ".switch",
      style: { shape: "round-rectangle", "border-color": token("accent"), "background-color": token("accent-soft") },
    },
    {
      selector: ".host",
      style: { shape: "ellipse", width: size * (many ? 0.6 : 0.9), height: size * (many ? 0.6 : 0.9) },
    },
    {
      selector: ".away",
      style: { "border-style": "dashed", "border-color": token("warn"), "background-color": token("warn-soft") },
    },
    {
      selector: ".down",
      style: {
        "border-style": "dotted",
        "border-color": token("bad"),
        "background-color": token("bad-soft"),
        color: token("bad"),
      },
    },
    {
      selector: ".link",
      style: {
        "curve-style": "haystack",
        "haystack-radius": 0,
        width: 2,
        "line-color": token("use-0"),
        "line-cap": "round",
        "overlay-opacity": 0,
        "z-index": 1,
      },
    },
    ...uses,
    {
      selector: ".broken",
      style: {
        "line-style": "dashed",
        "line-dash-pattern": [7, 6],
        "line-color": token("down"),
        width: many ? 1.5 : 3,
      },
    },
    { selector: ".unknown", style: { "line-style": "dotted" } },
    { selector: ".link.dim", style: { opacity: 0.28 } },
    { selector: "node.dim", style: { opacity: 0.4 } },
    { selector: "node.selected", style: { "border-width": many ? 2 : 4, "border-color": token("text") } },
    {
      selector: ".link.selected",
      style: { "underlay-color": token("accent"), "underlay-opacity": 0.4, "underlay-padding": 8 },
    },
    {
      selector: ".highlighted",
      style: {
        "curve-style": "unbundled-bezier",
        "control-point-distances": "data(bend)",
        "control-point-weights": 0.5,
        width: many ? 2.5 : 4,
        "target-arrow-shape": "triangle",
        "arrow-scale": many ? 0.5 : 0.9,
        "overlay-opacity": 0,
        "z-index": 5,
        label: "data(rate)",
        "font-family": font,
        "font-size": many ? 11 : 12,
        "font-weight": 600,
        color: token("text"),
        "text-rotation": "none",
        "text-background-color": token("surface"),
        "text-background-opacity": 0.92,
        "text-background-padding": "3px",
        "text-background-shape": "roundrectangle",
      },
    } as unknown as cytoscape.StylesheetJsonBlock,
    ...series,
  ] as cytoscape.StylesheetJson;
}

const PAN: Record<string, readonly [number, number]> = {
  ArrowLeft: [60, 0],
  ArrowRight: [-60, 0],
  ArrowUp: [0, 60],
  ArrowDown: [0, -60],
};

/** The map with its buttons; a place in `nodes` or `links` that is not there yet begins a new map. */
export function NetworkMapView(props: MapProps) {
  const container = useRef<HTMLDivElement>(null);
  const map = useRef<NetworkMap | null>(null);
  const shape = `${props.name} ${props.nodes.map((node) => node.id).join()} ${props.links.map((link) => link.id).join()}`;
  useEffect(() => {
    if (!container.current) return undefined;
    const drawn = new NetworkMap(container.current, props);
    map.current = drawn;
    drawn.update(props);
    return () => {
      map.current = null;
      drawn.destroy();
    };
  }, [shape]);
  useEffect(() => theme.subscribe(() => map.current?.restyle()), []);
  useEffect(() => {
    if (!map.current) return;
    map.current.onSelect = props.onSelect ?? (() => {});
    map.current.update(props);
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = PAN[event.key];
    if (step) map.current?.panBy(...step);
    else if (event.key === "+" || event.key === "=") map.current?.zoomBy(1.25);
    else if (event.key === "-") map.current?.zoomBy(0.8);
    else if (event.key === "0") map.current?.showAll();
    else if (event.key === "Escape") props.onSelect?.(null);
    else return;
    event.preventDefault();
  };
  return (
    <div class="map">
      <div
        class="map-canvas"
        ref={container}
        tabIndex={0}
        role="application"
        onKeyDown={onKeyDown}
        aria-label={`Map of ${props.name}. Arrow keys move it, plus and minus zoom, 0 shows all.`}
      />
      <div class="map-buttons" role="group" aria-label="Map">
        <button class="icon" title="Closer (+)" aria-label="Closer" onClick={() => map.current?.zoomBy(1.25)}>
          +
        </button>
        <button class="icon" title="Farther (−)" aria-label="Farther" onClick={() => map.current?.zoomBy(0.8)}>
          −
        </button>
        <button class="icon" title="Show all (0)" aria-label="Show all" onClick={() => map.current?.showAll()}>
          ⤢
        </button>
      </div>
    </div>
  );
}

/** What colours and widths of the links mean. */
export function MapLegend({ title }: { title: string }) {
  return (
    <div class="legend" aria-label={`Key: ${title}`} role="group">
      <span class="legend-title">{title}</span>
      {LEVELS.map((level, index) => (
        <span class="legend-item" key={index}>
          <i class="swatch" style={{ borderTop: `${level.width}px solid var(--use-${index})` }} aria-hidden="true" />
          {level.text}
        </span>
      ))}
      <span class="legend-item">
        <i class="swatch broken" aria-hidden="true" />
        down
      </span>
    </div>
  );
}
