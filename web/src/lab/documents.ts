/** What can be opened: results of runs, or of a sweep. */
import type { Overview, SweepOverview } from "./types.ts";

export type Document = Overview | SweepOverview;
