/** The network with the utilisation of each direction of each link at one moment, as a drawing for export and as rows. */
import { percent } from "../shared/format.ts";
import { LEVELS, levelOf } from "../shared/utilisation.ts";
import type { LinkResult, NetworkView } from "./rest.ts";
import type { Drawing, Ink, Shape } from "./shapes.ts";
import { line, round, text } from "./shapes.ts";

export interface MapPlot {
  name: string;
  title: string;
  network: NetworkView;
  /** By direction, as "S0->S4". */
  utilisation: ReadonlyMap<string, number>;
}

const EDGE = 46;
const TOP = 44;
/** Links of larger networks have no numbers beside them. */
const MOST_NUMBERED = 60;

/** The utilisation of all directions in an interval, by its number; over the whole run where that is null. */
export function utilisationAt(links: readonly LinkResult[], interval: number | null): Map<string, number> {
  const known = links.flatMap((link): [string, number][] => {
    const value = interval === null ? link.utilisation : link.series?.utilisation[interval];
    return value === null || value === undefined ? [] : [[link.link, value]];
  });
  return new Map(known);
}

export function drawMap(plot: MapPlot, ink: Ink, width = 760): Drawing {
  const { nodes, links } = plot.network;
  const xs = nodes.map((node) => node.x);
  const ys = nodes.map((node) => node.y);
  const [left, top] = [Math.min(...xs), Math.max(...ys)];
  const [spanX, spanY] = [Math.max(...xs) - left || 1, top - Math.min(...ys) || 1];
  const scale = Math.min((width - 2 * EDGE) / spanX, 620 / spanY);
  const places = new Map(
    nodes.map((node) => [node.name, { x: EDGE + (node.x - left) * scale, y: TOP + EDGE + (top - node.y) * scale }]),
  );
  const shapes: Shape[] = [text(16, 22, plot.title, ink.text, { "font-weight": 650, "font-size": 13 })];
  for (const link of links) {
    const [a, b] = [places.get(link.a), places.get(link.b)];
    if (a && b) shapes.push(...drawLink(plot, link.a, link.b, a, b, ink, links.length <= MOST_NUMBERED));
  }
  for (const node of nodes) {
    const place = places.get(node.name);
    if (place) shapes.push(...drawNode(node.name, node.kind, place, nodes.length <= MOST_NUMBERED, ink));
  }
  const bottom = TOP + 2 * EDGE + spanY * scale;
  return { width, height: round(bottom + 24), title: plot.title, shapes: [...shapes, ...drawKey(bottom + 6, ink)] };
}

/** What colours and widths mean. */
function drawKey(y: number, ink: Ink): Shape[] {
  return LEVELS.flatMap((level, index) => {
    const x = 16 + index * 128;
    return [
      line(x, y - 4, x + 26, y - 4, ink.use[index] ?? ink.quiet, { "stroke-width": level.width }),
      text(x + 32, y, level.text, ink.text, { "font-size": 11 }),
    ];
  });
}

interface Place {
  x: number;
  y: number;
}

/** Two lines side by side, each for what leads from its end; traffic keeps to the right. */
function drawLink(
  plot: MapPlot,
  nameA: string,
  nameB: string,
  a: Place,
  b: Place,
  ink: Ink,
  isNumbered: boolean,
): Shape[] {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [ux, uy] = [(b.x - a.x) / length, (b.y - a.y) / length];
  return [
    [nameA, nameB, 1],
    [nameB, nameA, -1],
  ].flatMap(([tail, head, side]) => {
    const sign = side as number;
    const [ox, oy] = [-uy * 4 * sign, ux * 4 * sign];
    const used = plot.utilisation.get(`${tail}->${head}`);
    const level = used === undefined ? 0 : levelOf(used);
    const dashes = used === undefined ? { "stroke-dasharray": "2 3" } : {};
    const shape = line(a.x + ox, a.y + oy, b.x + ox, b.y + oy, ink.use[level] ?? ink.quiet, {
      "stroke-width": LEVELS[level]?.width ?? 2,
      "stroke-linecap": "round",
      ...dashes,
    });
    const words = `${tail} to ${head}: ${used === undefined ? "not measured" : percent(used)}`;
    if (!isNumbered || used === undefined || used < 0.005) return [{ ...shape, title: words }];
    const along = sign > 0 ? 0.36 : 0.64;
    const [x, y] = [a.x + (b.x - a.x) * along + ox * 3.6, a.y + (b.y - a.y) * along + oy * 3.6 + 4];
    return [
      { ...shape, title: words },
      text(x, y, percent(used), ink.text, {
        "font-size": 11,
        "text-anchor": "middle",
        stroke: ink.paper,
        "stroke-width": 3,
        "paint-order": "stroke",
      }),
    ];
  });
}

function drawNode(name: string, kind: "host" | "switch", { x, y }: Place, isNamed: boolean, ink: Ink): Shape[] {
  const size = isNamed ? 15 : 5;
  const common = { fill: ink.paper, stroke: ink.text, "stroke-width": 1.5 };
  const shape: Shape =
    kind === "switch"
      ? {
          tag: "rect",
          attributes: { x: round(x - size), y: round(y - size), width: 2 * size, height: 2 * size, rx: 4, ...common },
        }
      : { tag: "circle", attributes: { cx: round(x), cy: round(y), r: size, ...common } };
  const label = text(x, y + 4, name, ink.text, {
    "text-anchor": "middle",
    "font-size": Math.min(12, 40 / Math.max(2, name.length) + 3),
    "font-weight": 600,
  });
  return isNamed ? [shape, label] : [{ ...shape, title: name }];
}

export function mapRows(plot: MapPlot): (string | number | null)[][] {
  const directions = plot.network.links.flatMap((link) => [`${link.a}->${link.b}`, `${link.b}->${link.a}`]);
  return [["link", "utilisation"], ...directions.map((name) => [name, plot.utilisation.get(name) ?? null])];
}
