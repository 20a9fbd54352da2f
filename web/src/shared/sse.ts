/** Server-sent events by fetch, which can send a token and where it was; `EventSource` can't. */
import { ApiError, send } from "./http.ts";

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Cuts a stream of text into events (HTML standard, 9.2.6); fed in any pieces. */
export class EventParser {
  #rest = "";
  #data: string[] = [];
  #event = "";
  #id: string | null = null;

  feed(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    // A CR at the end may be half of a CRLF: it waits for the next piece.
    const whole = this.#rest + text;
    const end = whole.endsWith("\r") ? whole.length - 1 : whole.length;
    const lines = whole.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + whole.slice(end);
    for (const line of lines) {
      const event = this.#take(line);
      if (event) events.push(event);
    }
    return events;
  }

  #take(line: string): ServerEvent | null {
    if (line === "") {
      const event =
        this.#data.length > 0 ? { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") } : null;
      this.#data = [];
      this.#event = "";
      return event;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }
}

export interface Follower {
  /** Called with the events of each piece that arrives, in order. */
  events(events: ServerEvent[]): void;
  /** Called when the stream is there (true) and when it has broken (false, with the reason). */
  connected(connected: boolean, reason: string): void;
}

const RETRY_MS = [500, 1000, 2000, 5000];
/** The server sends a comment at least this often; a stream that is silent for longer is broken. */
const SILENCE_MS = 45_000;

/** Follow a stream, and resume it after the last event whenever it breaks; returns what ends it. */
export function follow(first: string, resumed: string, follower: Follower): () => void {
  const stopped = new AbortController();
  let lastId: string | null = null;
  let failures = 0;

  async function once(): Promise<void> {
    const silent = new AbortController();
    const abort = (): void => silent.abort();
    stopped.signal.addEventListener("abort", abort);
    let timer = setTimeout(abort, SILENCE_MS);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (lastId !== null) headers["Last-Event-ID"] = lastId;
      const response = await send(lastId === null ? first : resumed, { headers, signal: silent.signal });
      if (!response.body) throw new ApiError(0, "the browser gives no stream");
      follower.connected(true, "");
      failures = 0;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(abort, SILENCE_MS);
        const events = parser.feed(value);
        for (const event of events) if (event.id !== null) lastId = event.id;
        if (events.length > 0) follower.events(events);
      }
    } finally {
      clearTimeout(timer);
      stopped.signal.removeEventListener("abort", abort);
    }
  }

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      let reason = "the connection ended";
      try {
        await once();
      } catch (error) {
        if (error instanceof ApiError) reason = error.detail;
      }
      if (stopped.signal.aborted) return;
      follower.connected(false, reason);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
      failures += 1;
    }
  }

  void run();
  return () => stopped.abort();
}
