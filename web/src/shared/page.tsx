/** What both pages begin with. */
import "./theme.css";
import "./layout.css";
import type { ComponentChildren, VNode } from "preact";
import { render } from "preact";
import { applyTheme, theme, toggleTheme } from "./theme.ts";

/** Show a page instead of the words for browsers without scripts. */
export function mount(page: VNode): void {
  applyTheme();
  const root = document.getElementById("page");
  root?.replaceChildren();
  if (root) render(page, root);
}

interface HeadProps {
  title: string;
  subtitle: string;
  /** Beside the title. */
  status?: ComponentChildren;
  children?: ComponentChildren;
}

export function PageHead({ title, subtitle, status, children }: HeadProps) {
  const other = theme.value === "dark" ? "Light colours" : "Dark colours";
  return (
    <header class="page-head">
      <div class="page-name">
        <img src="page/icon.svg" alt="" />
        <div>
          <h1>{title}</h1>
          <p class="quiet">{subtitle}</p>
        </div>
      </div>
      {status}
      <span class="spacer" />
      {children}
      <button class="icon theme" onClick={toggleTheme} aria-label={other} title={other}>
        {theme.value === "dark" ? "☀" : "☾"}
      </button>
    </header>
  );
}
