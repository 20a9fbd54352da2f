/** What the page can change, by the REST API's own checks; and which dialog is open. */
import { signal } from "@preact/signals";
import { bitrate, plural } from "../shared/format.ts";
import { ApiError, call } from "../shared/http.ts";
import type { Flow, PreviewQuestion } from "./api.ts";
import { applyFlow, preview, refreshNow, removeFlow, selection } from "./store.ts";

export type OpenDialog = { kind: "request" } | { kind: "change"; flow: Flow } | { kind: "release"; flow: Flow } | { kind: "link"; link: string; enable: boolean };

export const dialog = signal<OpenDialog | null>(null);
/** What was done last, told to screen readers too. */
export const done = signal("");

export interface FlowWish {
  source: string;
  destination: string;
  destination_port: number;
  rate_bps: number;
  lease_s?: number;
  max_paths?: number;
  objective?: string;
}

export async function requestFlow(wish: FlowWish): Promise<void> {
  const flow = await call<Flow>("POST", "/v1/flows", wish, { "Idempotency-Key": crypto.randomUUID() });
  applyFlow(flow);
  selection.value = { kind: "flow", id: flow.flow_id };
  done.value = `${flow.source} → ${flow.destination}: ${bitrate(flow.rate_bps)} of ${bitrate(flow.requested_bps)} granted over ${plural(flow.streams.length, "path")}`;
}

export async function changeFlow(flow: Flow, rate_bps: number): Promise<void> {
  const changed = await call<Flow>("PATCH", `/v1/flows/${encodeURIComponent(flow.flow_id)}`, { rate_bps });
  applyFlow(changed);
  done.value = `${flow.source} → ${flow.destination} has ${bitrate(changed.rate_bps)} of ${bitrate(rate_bps)} now`;
}

export async function renewFlow(flow: Flow): Promise<void> {
  applyFlow(await call<Flow>("POST", `/v1/flows/${encodeURIComponent(flow.flow_id)}/renew`));
  done.value = `the lease of ${flow.source} → ${flow.destination} is renewed`;
}

export async function releaseFlow(flow: Flow): Promise<void> {
  await call<undefined>("DELETE", `/v1/flows/${encodeURIComponent(flow.flow_id)}`);
  removeFlow(flow.flow_id);
  if (selection.value?.id === flow.flow_id) selection.value = null;
  done.value = `${flow.source} → ${flow.destination} is released`;
}

export async function enableLink(link: string, enabled: boolean): Promise<void> {
  await call<unknown>("PATCH", `/v1/links/${encodeURIComponent(link)}`, { enabled });
  refreshNow();
  done.value = enabled ? `${link} may be used again` : `${link} is out of use`;
}

export async function ask(question: PreviewQuestion, title: string): Promise<void> {
  preview.value = { title, answer: await call("POST", "/v1/preview", question) };
}

/** The API's sentence, or what went wrong before it could say one. */
export function sentence(error: unknown): string {
  const text = error instanceof ApiError ? error.detail : String(error);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
