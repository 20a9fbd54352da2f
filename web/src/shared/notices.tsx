/** What is said where there is nothing to show: what is so, and what to do. */
import type { ComponentChildren } from "preact";

export type Tone = "plain" | "good" | "warn" | "bad";

const MARKS: Record<Tone, string> = { plain: "i", good: "✓", warn: "!", bad: "×" };

export function Notice({
  tone = "plain",
  title,
  children,
  live,
}: {
  tone?: Tone;
  title: string;
  children?: ComponentChildren;
  live?: boolean;
}) {
  return (
    <div class={`notice ${tone}`} {...(live || tone === "bad" ? { role: tone === "bad" ? "alert" : "status" } : {})}>
      <span class="notice-mark" aria-hidden="true">
        {MARKS[tone]}
      </span>
      <div>
        <strong>{title}</strong>
        {children ? <div class="notice-text">{children}</div> : null}
      </div>
    </div>
  );
}

/** The middle of an area that has nothing to show yet. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children ? <div>{children}</div> : null}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div class="empty" role="status">
      <span class="spinner" aria-hidden="true" />
      Loading {what}…
    </div>
  );
}

/** A word about a state, with a mark and a colour that say the same. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
