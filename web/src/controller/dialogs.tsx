/** Request, change and release a flow; disable a link. The API's refusals are shown as it says them. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog, Field, Names } from "../shared/dialog.tsx";
import { bitrate, parseBitrate } from "../shared/format.ts";
import { ApiError } from "../shared/http.ts";
import { Notice } from "../shared/notices.tsx";
import { changeFlow, dialog, enableLink, releaseFlow, requestFlow, sentence } from "./actions.ts";
import type { FlowRequest, FlowSummaryView } from "./rest.ts";
import { hostNames } from "./store.ts";

const RATE_HINT = "Goodput: a number with k, M or G, as 8.5M for 8.5 Mbit/s.";

function close(): void {
  dialog.value = null;
}

/** A form that sends something once, and shows why that was refused. */
function Form({
  send,
  verb,
  sending,
  isDanger,
  children,
}: {
  send: () => Promise<void>;
  verb: string;
  sending: string;
  isDanger?: boolean;
  children: (blamed: string) => ComponentChildren;
}) {
  const [isSending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setRefusal(null);
    try {
      await send();
      close();
    } catch (error) {
      setRefusal(error instanceof ApiError ? error : new ApiError(0, sentence(error)));
      setSending(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      {children(refusal?.field ?? "")}
      {refusal ? <Notice tone="bad" title={sentence(refusal)} /> : null}
      <div class="actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class={isDanger ? "danger" : "primary"} disabled={isSending}>
          {isSending ? sending : verb}
        </button>
      </div>
    </form>
  );
}

function rateOf(text: string): number {
  const rate_bps = parseBitrate(text);
  if (rate_bps === null)
    throw new ApiError(0, `rate: “${text}” is no rate; write a number with k, M or G, as 8.5M`, "rate_bps");
  return rate_bps;
}

function wholeNumber(text: string, field: string, name: string): number {
  if (!/^\s*\d+\s*$/.test(text)) throw new ApiError(0, `${name}: “${text}” is no whole number`, field);
  return Number(text);
}

function RequestDialog() {
  const [wanted, setWish] = useState({
    source: "",
    destination: "",
    port: "5001",
    rate: "",
    lease: "600",
    paths: "",
    objective: "",
  });
  const set = (name: keyof typeof wanted) => (event: Event) =>
    setWish({ ...wanted, [name]: (event.target as HTMLInputElement).value });
  const input = (
    name: keyof typeof wanted,
    field: string,
    blamed: string,
    more: Record<string, string | boolean> = {},
  ) => (
    <input
      name={field}
      value={wanted[name]}
      onInput={set(name)}
      aria-invalid={blamed === field}
      autocomplete="off"
      spellcheck={false}
      {...more}
    />
  );
  const send = (): Promise<void> => {
    const body: FlowRequest = {
      source: wanted.source.trim(),
      destination: wanted.destination.trim(),
      destination_port: wholeNumber(wanted.port, "destination_port", "port"),
      rate_bps: rateOf(wanted.rate),
    };
    if (wanted.lease.trim()) body.lease_s = wholeNumber(wanted.lease, "lease_s", "lease");
    if (wanted.paths.trim()) body.max_paths = wholeNumber(wanted.paths, "max_paths", "paths");
    if (wanted.objective.trim()) body.objective = wanted.objective.trim();
    return requestFlow(body);
  };
  return (
    <Dialog title="Request a flow" onClose={close}>
      <Form send={async () => send()} verb="Request" sending="Requesting…">
        {(blamed) => (
          <>
            <Names id="host-names" names={hostNames.value} />
            <div class="fields">
              <Field label="From">
                {input("source", "source", blamed, {
                  list: "host-names",
                  placeholder: "host or address",
                  autofocus: true,
                })}
              </Field>
              <Field label="To">
                {input("destination", "destination", blamed, { list: "host-names", placeholder: "host or address" })}
              </Field>
              <Field label="Rate" hint={RATE_HINT}>
                {input("rate", "rate_bps", blamed, { placeholder: "8.5M" })}
              </Field>
              <Field label="Port" hint="TCP port on which the destination listens.">
                {input("port", "destination_port", blamed, { inputmode: "numeric" })}
              </Field>
            </div>
            <details>
              <summary>More</summary>
              <div class="fields more-fields">
                <Field label="Lease (s)" hint="It ends then unless renewed; empty: the controller's own.">
                  {input("lease", "lease_s", blamed, { inputmode: "numeric" })}
                </Field>
                <Field label="Maximum paths" hint="Empty: as the optimum has them.">
                  {input("paths", "max_paths", blamed, { inputmode: "numeric" })}
                </Field>
                <Field label="Objective" hint="Empty: the controller's default.">
                  {input("objective", "objective", blamed, { placeholder: "max_throughput_min_delay" })}
                </Field>
              </div>
            </details>
          </>
        )}
      </Form>
    </Dialog>
  );
}

function ChangeDialog({ flow }: { flow: FlowSummaryView }) {
  const [rate, setRate] = useState(bitrate(flow.requested_bps));
  return (
    <Dialog title={`Change the rate of ${flow.source} → ${flow.destination}`} onClose={close}>
      <Form send={async () => changeFlow(flow, rateOf(rate))} verb="Change" sending="Changing…">
        {(blamed) => (
          <Field label="Rate" hint={`${RATE_HINT} It keeps its paths, and its lease is renewed.`}>
            <input
              name="rate_bps"
              value={rate}
              onInput={(event) => setRate(event.currentTarget.value)}
              aria-invalid={blamed === "rate_bps"}
              autofocus
              autocomplete="off"
            />
          </Field>
        )}
      </Form>
    </Dialog>
  );
}

function ReleaseDialog({ flow }: { flow: FlowSummaryView }) {
  return (
    <Dialog title={`Release ${flow.source} → ${flow.destination}?`} onClose={close}>
      <Form send={() => releaseFlow(flow)} verb="Release" sending="Releasing…" isDanger>
        {() => (
          <p>
            Its rules are removed from the switches at once, and its {bitrate(flow.rate_bps)} are free for others.
            Connections that still use its paths go on over the default route.
          </p>
        )}
      </Form>
    </Dialog>
  );
}

function LinkDialog({ link, enable }: { link: string; enable: boolean }) {
  return (
    <Dialog title={enable ? `Enable ${link}?` : `Disable ${link}?`} onClose={close}>
      <Form
        send={() => enableLink(link, enable)}
        verb={enable ? "Enable" : "Disable"}
        sending="Changing…"
        isDanger={!enable}
      >
        {() => (
          <p>
            {enable
              ? "Flows may be planned over it again."
              : "Flows on it are moved to other paths, as if it had failed; this outlasts a restart of the controller."}
          </p>
        )}
      </Form>
    </Dialog>
  );
}

export function Dialogs() {
  const open = dialog.value;
  if (!open) return null;
  if (open.kind === "request") return <RequestDialog />;
  if (open.kind === "change") return <ChangeDialog flow={open.flow} />;
  if (open.kind === "release") return <ReleaseDialog flow={open.flow} />;
  return <LinkDialog link={open.link} enable={open.enable} />;
}
