/** Parts of several runs, as they come in. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../shared/http.ts";
import { partOf } from "./session.ts";

interface Parts<T> {
  byRun: ReadonlyMap<number, T>;
  isLoading: boolean;
  failure: string;
}

/** Ask for a part of each of these runs; what was there before stays until all is. */
export function useParts<T>(document: number, runs: readonly number[], part: "flows" | "links"): Parts<T> {
  const [parts, setParts] = useState<Parts<T>>({ byRun: new Map(), isLoading: true, failure: "" });
  const wanted = runs.join();
  useEffect(() => {
    let isWanted = true;
    setParts((before) => ({ ...before, isLoading: true }));
    Promise.all(runs.map(async (run): Promise<[number, T]> => [run, await partOf<T>(document, run, part)])).then(
      (byRun) => {
        if (isWanted) setParts({ byRun: new Map(byRun), isLoading: false, failure: "" });
      },
      (error: unknown) => {
        if (isWanted)
          setParts((before) => ({
            ...before,
            isLoading: false,
            failure: error instanceof ApiError ? error.detail : String(error),
          }));
      },
    );
    return () => {
      isWanted = false;
    };
  }, [document, wanted, part]);
  return parts;
}
