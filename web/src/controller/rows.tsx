/** A short list of names with a value each. */
import type { ComponentChildren } from "preact";

export interface NamedValue {
  key: string;
  name: ComponentChildren;
  value: ComponentChildren;
}

/** The first `most` rows; `more` says where the others are found. */
export function Rows({ rows, most = 50, more = "" }: { rows: readonly NamedValue[]; most?: number; more?: string }) {
  return (
    <ul class="flow-list">
      {rows.slice(0, most).map(({ key, name, value }) => (
        <li key={key}>
          <span>{name}</span>
          <span>{value}</span>
        </li>
      ))}
      {rows.length > most ? (
        <li class="quiet">
          and {rows.length - most} more; {more}
        </li>
      ) : null}
    </ul>
  );
}
