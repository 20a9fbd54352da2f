/** Light or dark: as the system has it, unless the person chose. */
import { signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "mstcp.theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : null;
}

function current(): Theme {
  return chosen() ?? (prefersDark.matches ? "dark" : "light");
}

/** The theme in use; map and charts are drawn again when it changes. */
export const theme = signal<Theme>(current());

/** Put the theme in force and follow the system's from now on. Call once, before the first picture. */
export function applyTheme(): void {
  const apply = (): void => {
    theme.value = current();
    document.documentElement.dataset.theme = theme.value;
  };
  prefersDark.addEventListener("change", apply);
  apply();
}

/** Change to the other theme and remember it. */
export function toggleTheme(): void {
  const other: Theme = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, other);
  theme.value = other;
  document.documentElement.dataset.theme = other;
}

/** The value of a token of theme.css, for what is drawn on a canvas. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
