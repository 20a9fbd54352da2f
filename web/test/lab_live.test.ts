import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabEvent, Live } from "../src/lab/live.ts";
import { apply, begin, counts, timeLeft } from "../src/lab/live.ts";
import type { WatchPlan } from "../src/lab/rest.ts";

const PLAN: WatchPlan = {
  engine: "live",
  clock: "machine",
  folder: "out",
  duration_s: 10,
  warm_up_s: 1,
  sample_s: 0.25,
  links: ["a->b"],
  runs: [1, 2, 3].map((number) => ({ number, case: "1", protocol: "mstcp", seed: number, kept: number === 3 })),
};

function after(...events: LabEvent[]): Live {
  const live = begin(PLAN);
  for (const event of events) apply(live, event);
  return live;
}

const started = (number: number, at_s = 0): LabEvent => ({ event: "run-started", number, run: "", planned: 3, at_s });
const rates = (number: number, seconds: number): LabEvent => ({
  event: "rates-measured",
  number,
  seconds,
  links: [0.5],
  streams_bps: { 1: [1e6] },
  at_s: 0,
});
const finished = (number: number, valid: boolean, at_s = 0): LabEvent => ({
  event: "run-finished",
  number,
  run: "",
  summary: "",
  valid,
  at_s,
});

test("runs go through their states, and what was kept counts as valid", () => {
  assert.deepEqual(counts(after()), { waiting: 2, running: 0, valid: 1, invalid: 0, failed: 0 });
  assert.deepEqual(counts(after(started(1))), { waiting: 1, running: 1, valid: 1, invalid: 0, failed: 0 });
  assert.deepEqual(counts(after(started(1), finished(1, false))), {
    waiting: 1,
    running: 0,
    valid: 1,
    invalid: 1,
    failed: 0,
  });
  assert.deepEqual(
    counts(after(started(1), { event: "run-broken", number: 1, run: "", reason: "no", at_s: 1 })).failed,
    1,
  );
});

test("samples go with the run's end and with another attempt", () => {
  const running = after(started(1), rates(1, 0.25), rates(1, 0.5));
  assert.deepEqual(
    running.runs.get(1)?.samples.map((sample) => sample.seconds),
    [0.25, 0.5],
  );
  assert.equal(after(started(1), rates(1, 0.25), finished(1, true)).runs.get(1)?.samples.length, 0);
  const again = after(
    started(1),
    rates(1, 0.25),
    { event: "run-repeated", number: 1, run: "", reason: "busy", at_s: 1 },
    rates(1, 0.25),
  ).runs.get(1);
  assert.deepEqual([again?.repeated, again?.samples.length], [["busy"], 1]);
});

test("samples are bounded", () => {
  const live = after(started(1));
  for (let step = 0; step < 2500; step += 1) apply(live, rates(1, step));
  assert.equal(live.runs.get(1)?.samples.length, 2400);
  assert.equal(live.runs.get(1)?.samples.at(-1)?.seconds, 2499);
});

test("a run that changes is a new object, the others stay", () => {
  const live = after(started(1));
  const [first, second] = [live.runs.get(1), live.runs.get(2)];
  apply(live, rates(1, 0.25));
  assert.notEqual(live.runs.get(1), first);
  assert.equal(live.runs.get(2), second);
});

test("what is left is what the runs that have ended took", () => {
  assert.equal(timeLeft(after(started(1)), 5), null);
  assert.equal(timeLeft(after(started(1), finished(1, true, 10)), 10), 10);
  assert.equal(timeLeft(after(started(1), finished(1, true, 10), started(2, 10)), 14), 6);
});
