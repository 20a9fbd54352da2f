import assert from "node:assert/strict";
import test from "node:test";
import { bitrate, bytes, duration, parseBitrate, percent, plural } from "../src/shared/format.ts";

test("rates have three digits and a unit", () => {
  assert.deepEqual([0, 1, 999.9, 999.97e3, 8.5e6, 12.34e6, 999.6e6, 1e9, null].map(bitrate), [
    "0 bit/s",
    "1.00 bit/s",
    "1.00 kbit/s",
    "1.00 Mbit/s",
    "8.50 Mbit/s",
    "12.3 Mbit/s",
    "1.00 Gbit/s",
    "1.00 Gbit/s",
    "–",
  ]);
});

test("a rate that is written is the rate that is read", () => {
  for (const rate of [1, 64e3, 8.5e6, 10e6, 2.5e9]) assert.equal(parseBitrate(bitrate(rate)), rate);
  assert.equal(parseBitrate("8.5M"), 8.5e6);
  assert.equal(parseBitrate("8,5 Mbit/s"), 8.5e6);
  assert.equal(parseBitrate("1500000"), 1.5e6);
  for (const none of ["", "fast", "-1M", "1e6e", "0", "8.5 MB"]) assert.equal(parseBitrate(none), null, none);
});

test("times, sizes, shares and counts have units", () => {
  assert.deepEqual([0, 47.8e-3, 1.2, 200, 7260].map(duration), ["0 s", "47.8 ms", "1.20 s", "3 min 20 s", "2 h 1 min"]);
  assert.deepEqual([0, 999, 48.2e6].map(bytes), ["0 B", "999 B", "48.2 MB"]);
  assert.deepEqual([0, 0.001, 0.98, 1].map(percent), ["0 %", "< 1 %", "98 %", "100 %"]);
  assert.deepEqual([plural(1, "flow"), plural(2, "switch", "switches")], ["1 flow", "2 switches"]);
});
