/** Files from the page: drawings as SVG and PNG in the light colours that print well, rows as CSV. */

import { token } from "../shared/theme.ts";
import type { Rows } from "./csv.ts";
import { toCsv } from "./csv.ts";
import type { Drawing, Ink } from "./shapes.ts";
import { toSvg } from "./shapes.ts";

/** The page's own colours, or those of the light theme. */
export function inkOf(which: "page" | "light"): Ink {
  const root = document.documentElement;
  const before = root.dataset.theme;
  if (which === "light") root.dataset.theme = "light";
  const ink: Ink = {
    paper: token("surface"),
    text: token("text"),
    quiet: token("quiet"),
    line: token("line"),
    series: Array.from({ length: 9 }, (_, index) => token(`series-${index}`)),
    use: Array.from({ length: 5 }, (_, index) => token(`use-${index}`)),
  };
  if (which === "light" && before !== undefined) root.dataset.theme = before;
  return ink;
}

export function saveCsv(name: string, rows: Rows): void {
  save(`${name}.csv`, new Blob([toCsv(rows)], { type: "text/csv" }));
}

export function saveSvg(name: string, draw: (ink: Ink) => Drawing): void {
  const ink = inkOf("light");
  save(`${name}.svg`, new Blob([toSvg(draw(ink), ink)], { type: "image/svg+xml" }));
}

const PNG_SCALE = 2;

/** The same picture in pixels, two for each of the drawing's. */
export async function savePng(name: string, draw: (ink: Ink) => Drawing): Promise<void> {
  const ink = inkOf("light");
  const drawing = draw(ink);
  const url = URL.createObjectURL(new Blob([toSvg(drawing, ink)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = drawing.width * PNG_SCALE;
    canvas.height = drawing.height * PNG_SCALE;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save(`${name}.png`, blob);
  } finally {
    URL.revokeObjectURL(url);
  }
}

function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
