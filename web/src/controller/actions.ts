/** What the page can change, by the REST API's own checks; and which dialog is open. */
import { signal } from "@preact/signals";
import { bitrate, plural } from "../shared/format.ts";
import { ApiError, call } from "../shared/http.ts";
import type { FlowRequest, FlowSummaryView, PreviewRequest } from "./rest.ts";
import { applyFlow, preview, refreshNow, removeFlow, select, selection } from "./store.ts";

export type OpenDialog =
  | { kind: "request" }
  | { kind: "change"; flow: FlowSummaryView }
  | { kind: "release"; flow: FlowSummaryView }
  | { kind: "link"; link: string; enable: boolean };

export const dialog = signal<OpenDialog | null>(null);
export function openDialog(which: OpenDialog): void {
  dialog.value = which;
}

/** What was done last; read out by screen readers. */
export const done = signal("");

export async function requestFlow(request: FlowRequest): Promise<void> {
  const flow = await call<FlowSummaryView>("POST", "/v1/flows", request, { "Idempotency-Key": crypto.randomUUID() });
  applyFlow(flow);
  select({ kind: "flow", id: flow.flow_id });
  done.value = `${flow.source} → ${flow.destination}: ${bitrate(flow.rate_bps)} of ${bitrate(flow.requested_bps)} granted over ${plural(flow.streams.length, "path")}`;
}

export async function changeFlow(flow: FlowSummaryView, rate_bps: number): Promise<void> {
  const changed = await call<FlowSummaryView>("PATCH", `/v1/flows/${encodeURIComponent(flow.flow_id)}`, { rate_bps });
  applyFlow(changed);
  done.value = `${flow.source} → ${flow.destination} has ${bitrate(changed.rate_bps)} of ${bitrate(rate_bps)} now`;
}

export async function renewFlow(flow: FlowSummaryView): Promise<void> {
  applyFlow(await call<FlowSummaryView>("POST", `/v1/flows/${encodeURIComponent(flow.flow_id)}/renew`));
  done.value = `the lease of ${flow.source} → ${flow.destination} is renewed`;
}

export async function releaseFlow(flow: FlowSummaryView): Promise<void> {
  await call<undefined>("DELETE", `/v1/flows/${encodeURIComponent(flow.flow_id)}`);
  removeFlow(flow.flow_id);
  if (selection.value?.id === flow.flow_id) select(null);
  done.value = `${flow.source} → ${flow.destination} is released`;
}

export async function enableLink(link: string, enabled: boolean): Promise<void> {
  await call<unknown>("PATCH", `/v1/links/${encodeURIComponent(link)}`, { enabled });
  refreshNow();
  done.value = enabled ? `${link} is enabled` : `${link} is disabled`;
}

export async function ask(question: PreviewRequest, title: string): Promise<void> {
  preview.value = { title, answer: await call("POST", "/v1/preview", question) };
}

/** The API's sentence, or what went wrong before it could say one. */
export function sentence(error: unknown): string {
  const text = error instanceof ApiError ? error.detail : String(error);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
