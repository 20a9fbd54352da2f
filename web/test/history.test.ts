import assert from "node:assert/strict";
import test from "node:test";
import { FlowHistory, measuredOf, quantile } from "../src/controller/history.ts";

const stream = (rate_bps: number, measured_bps: number | null) => ({
  source_port: 1,
  rate_bps,
  delay_s: 0,
  path: ["A", "B"],
  wire_bps: rate_bps * 1.25,
  measured_bps,
});
const flow = (id: string, ...streams: ReturnType<typeof stream>[]) => ({ flow_id: id, streams }) as never;

test("what is counted on the wire is told as goodput", () => {
  assert.equal(measuredOf(flow("a", stream(4e6, 2.5e6), stream(2e6, 2.5e6))), 4e6);
  assert.equal(measuredOf(flow("a", stream(4e6, 2.5e6), stream(2e6, null))), null);
});

test("a flow's history ends with the flow, and is bounded", () => {
  const history = new FlowHistory();
  for (let time_s = 0; time_s < 5000; time_s += 1)
    history.take({ time_s, flows: [flow("a", stream(time_s, null))] } as never);
  assert.equal(history.of("a").length, 300);
  assert.equal(history.spark("a").at(-1), 4999);
  history.take({ time_s: 5000, flows: [] } as never);
  assert.deepEqual(history.of("a"), []);
});

test("a quantile lies within its bucket", () => {
  const histogram = { bounds_s: [1, 2, 4], counts: [0, 10, 0, 0], sum_s: 15 };
  assert.equal(quantile(histogram, 0.5), 1.5);
  assert.equal(quantile({ ...histogram, counts: [0, 0, 0, 0] }, 0.5), null);
  assert.equal(quantile({ ...histogram, counts: [0, 0, 0, 3] }, 0.5), 4);
});
