import assert from "node:assert/strict";
import { test } from "node:test";
import { toCsv } from "../src/lab/csv.ts";
import type { LinePlot } from "../src/lab/line_plot.ts";
import { drawLines, lineRows } from "../src/lab/line_plot.ts";
import type { Ink } from "../src/lab/shapes.ts";
import { escaped, ticks, toSvg } from "../src/lab/shapes.ts";
import { estimate, meanSeries, pooledQuantiles, weightedSeries } from "../src/lab/statistics.ts";

const INK: Ink = { paper: "#fff", text: "#000", quiet: "#555", line: "#ddd", series: ["#00f"], use: ["#000"] };

test("intervals are Student's, as the report has them", () => {
  assert.deepEqual(estimate([]), null);
  assert.deepEqual(estimate([4]), { mean: 4, half_width: null, count: 1 });
  const estimated = estimate([1, 2, 3, 4]);
  assert.equal(estimated?.mean, 2.5);
  assert.ok(Math.abs((estimated?.half_width ?? 0) - (3.18245 * Math.sqrt(5 / 3)) / 2) < 1e-9);
});

test("the quantile beyond the table goes on from it", () => {
  const spread = (count: number): number =>
    (estimate(Array.from({ length: count }, (_, index) => index % 2))?.half_width ?? 0) * Math.sqrt(count - 1) * 2;
  assert.ok(Math.abs(spread(32) - 2.0395) < 1e-3); // 31 degrees
  assert.ok(Math.abs(spread(122) - 1.9798) < 1e-3); // 121 degrees
});

test("means leave out what is not known", () => {
  assert.deepEqual(
    meanSeries([
      [1, null],
      [3, null, 5],
    ]),
    [2, null, 5],
  );
  assert.deepEqual(
    weightedSeries([
      { values: [1, 4], weights: [3, 0] },
      { values: [5, null], weights: [1, 1] },
    ]),
    [2, null],
  );
});

test("distributions are put together by weight", () => {
  assert.deepEqual(pooledQuantiles([{ quantiles: [1, 2, 3], weight: 1 }]), [1, 2, 3]);
  assert.deepEqual(
    pooledQuantiles([
      { quantiles: [1, 1, 1], weight: 3 },
      { quantiles: [9, 9, 9], weight: 1 },
    ]),
    [1, 1, 9],
  );
  assert.deepEqual(pooledQuantiles([]), []);
});

test("ticks are round and within", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0, 0.93, 4), [0, 0.25, 0.5, 0.75]);
  assert.deepEqual(ticks(0, 0, 4), [0]);
});

const PLOT: LinePlot = {
  name: "plot",
  title: 'A <b>"&"</b>',
  x: { label: "time in s", column: "time_s", scale: 1 },
  y: { label: "rate in Mbit/s", column: "rate_bps", scale: 1e6 },
  lines: [{ label: "<img>", series: 0, x: [0, 1, 2], y: [1234567.891, null, 2e6] }],
};

test("CSV has all digits, and nothing where nothing was measured", () => {
  assert.equal(toCsv(lineRows(PLOT)), "line,time_s,rate_bps\n<img>,0,1234567.891\n<img>,1,\n<img>,2,2000000\n");
  assert.equal(toCsv([["a,b", 'say "x"', "=1+1", -2]]), '"a,b","say ""x""",\'=1+1,-2\n');
});

test("pictures hold names as text, and gaps as gaps", () => {
  const svg = toSvg(drawLines(PLOT, INK), INK);
  assert.ok(!/<img|<b>/.test(svg));
  assert.ok(svg.includes("A &lt;b&gt;&quot;&amp;&quot;&lt;/b&gt;"));
  assert.equal(escaped("a\u0000<\uffff"), "a&lt;");
  assert.equal(/ d="([^"]*)"/.exec(svg)?.[1]?.match(/M/g)?.length, 2);
});
