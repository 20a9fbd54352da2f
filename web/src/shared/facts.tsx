/** Names with their values, one a line; those without a value (null) are left out. */
import type { ComponentChildren } from "preact";

export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === null ? null : (
          <>
            <dt key={`name ${name}`}>{name}</dt>
            <dd key={`value ${name}`}>{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}
