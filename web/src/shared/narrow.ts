/** Whether the page is as narrow as on a phone: then one thing is shown at a time. */
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 860px)");

export const isNarrow = signal(query.matches);

query.addEventListener("change", () => {
  isNarrow.value = query.matches;
});
