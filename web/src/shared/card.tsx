/** A part of a page under its heading. */
import type { ComponentChildren } from "preact";

interface CardProps {
  title: string;
  class?: string;
  /** Beside the heading. */
  note?: ComponentChildren;
  /** At the other end of the heading's line. */
  tools?: ComponentChildren;
  children: ComponentChildren;
}

export function Card({ title, class: name = "", note, tools, children }: CardProps) {
  return (
    <section class={`card ${name}`} aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {note}
        <span class="spacer" />
        {tools}
      </div>
      {children}
    </section>
  );
}
