import assert from "node:assert/strict";
import test from "node:test";
import { Ring } from "../src/shared/ring.ts";

test("a ring keeps the last ones, and no more", () => {
  const ring = new Ring<number>(3);
  assert.equal(ring.newest(0), undefined);
  for (let number = 1; number <= 100_000; number += 1) ring.push(number);
  assert.deepEqual(ring.toArray(), [99_998, 99_999, 100_000]);
  assert.deepEqual([ring.newest(0), ring.newest(2), ring.newest(3)], [100_000, 99_998, undefined]);
  assert.deepEqual([ring.length, ring.total], [3, 100_000]);
  ring.clear();
  assert.deepEqual(ring.toArray(), []);
});
