import assert from "node:assert/strict";
import test from "node:test";

// What keeps its state in the browser is not there in Node.
Object.assign(globalThis, { sessionStorage: { getItem: () => null } });
const { EventParser } = await import("../src/shared/sse.ts");

const STREAM =
  'retry: 1000\r\n: events follow\r\n\r\nid: a-1\nevent: link_down\ndata: {"x":1}\n\nid: a-2\ndata: one\ndata: two\r\rdata:last\n\ndata: cut';
const EVENTS = [
  { id: "a-1", event: "link_down", data: '{"x":1}' },
  { id: "a-2", event: "message", data: "one\ntwo" },
  { id: "a-2", event: "message", data: "last" },
];

test("events are the same in whatever pieces the stream arrives", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.feed(STREAM.slice(at, at + size)));
    assert.deepEqual(events, EVENTS, `pieces of ${size}`);
  }
});
