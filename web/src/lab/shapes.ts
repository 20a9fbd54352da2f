/** Drawings as lists of shapes: the page shows them as SVG, and an export is the same as text. */

export type Attributes = Record<string, string | number>;

export interface Shape {
  tag: "line" | "path" | "circle" | "rect" | "text";
  attributes: Attributes;
  text?: string;
  /** Shown where the pointer rests. */
  title?: string;
}

export interface Drawing {
  width: number;
  height: number;
  title: string;
  shapes: Shape[];
}

/** Colours of a drawing. */
export interface Ink {
  paper: string;
  text: string;
  quiet: string;
  line: string;
  series: readonly string[];
  use: readonly string[];
}

export const FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";

/** Dash patterns, so that lines differ without colour too. */
export const DASHES: readonly (readonly number[])[] = [
  [],
  [7, 3],
  [2, 2],
  [8, 3, 2, 3],
  [5, 2],
  [7, 2, 2, 2, 2, 2],
  [12, 3],
  [4, 2, 4, 2, 2, 2],
];

export const line = (x1: number, y1: number, x2: number, y2: number, stroke: string, more: Attributes = {}): Shape => ({
  tag: "line",
  attributes: { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), stroke, ...more },
});

export const text = (x: number, y: number, words: string, fill: string, more: Attributes = {}): Shape => ({
  tag: "text",
  attributes: { x: round(x), y: round(y), fill, "font-size": 12, ...more },
  text: words,
});

export const round = (value: number): number => Math.round(value * 100) / 100;

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** Text as XML has it; what XML cannot hold is left out. */
export function escaped(words: string): string {
  return words.replace(CONTROLS, "").replace(/[&<>"]/g, (letter) => ESCAPES[letter] ?? letter);
}

/** A drawing as a file that stands alone. */
export function toSvg(drawing: Drawing, ink: Ink): string {
  const shapes = drawing.shapes.map((shape) => {
    const attributes = Object.entries(shape.attributes)
      .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
      .join("");
    const title = shape.title === undefined ? "" : `<title>${escaped(shape.title)}</title>`;
    const inside = `${title}${escaped(shape.text ?? "")}`;
    return inside ? `<${shape.tag}${attributes}>${inside}</${shape.tag}>` : `<${shape.tag}${attributes}/>`;
  });
  const size = `width="${drawing.width}" height="${drawing.height}" viewBox="0 0 ${drawing.width} ${drawing.height}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${escaped(FONT)}">\n<title>${escaped(drawing.title)}</title>\n` +
    `<rect width="100%" height="100%" fill="${ink.paper}"/>\n${shapes.join("\n")}\n</svg>\n`
  );
}

/** Round steps for an axis from `least` to `most`: about `count` of them. */
export function ticks(least: number, most: number, count: number): number[] {
  const span = most - least;
  if (!(span > 0) || !Number.isFinite(span)) return [least];
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999) ?? raw;
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step);
}
