/** What can be opened: results of runs, of a sweep, or of routing alone. */
import type { Overview } from "./types.ts";

export type Document = Overview;
