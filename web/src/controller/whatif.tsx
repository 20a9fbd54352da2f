/** What would happen if: choose, ask the controller, look; nothing is installed. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Names } from "../shared/dialog.tsx";
import { Facts } from "../shared/facts.tsx";
import { bitrate, parseBitrate, percent, plural } from "../shared/format.ts";
import { isNarrow } from "../shared/narrow.ts";
import { Badge, Notice } from "../shared/notices.tsx";
import { ask, sentence } from "./actions.ts";
import type {
  AddedFlowView,
  MovedFlowView,
  PreviewLinkView,
  PreviewPathView,
  PreviewRequest,
  PreviewView,
} from "./rest.ts";
import { Rows } from "./rows.tsx";
import { flows, hostNames, linkNames, preview, switchNames } from "./store.ts";

/** A failure, a scaled demand or a new flow: what is supposed, and in which words. */
export type Supposition = { text: string } & (
  | { link: string }
  | { node: string }
  | { scale: { flow_id?: string; factor: number } }
  | { add: { source: string; destination: string; rate_bps: number } }
);

const question = signal<readonly Supposition[]>([]);
/** Paths of the answer that are looked at; they are drawn on the map. */
export const previewPaths = signal<readonly PreviewPathView[]>([]);
/** Which tab is open; the panel opens itself when something is to be supposed. */
export const tab = signal(isNarrow.peek() ? "flows" : "events");

/** Add something to the question, and open the panel; a demand is scaled once. */
function suppose(what: Supposition): void {
  const isReplaced = (each: Supposition): boolean =>
    each.text === what.text || ("scale" in each && "scale" in what && each.scale.flow_id === what.scale.flow_id);
  question.value = [...question.value.filter((each) => !isReplaced(each)), what];
  tab.value = "whatif";
}

export function supposeFailure(name: string, kind: "link" | "node"): void {
  suppose({ text: `${name} fails`, ...(kind === "link" ? { link: name } : { node: name }) });
}

/** Suppose that a demand, or each, is multiplied. */
export function supposeScaled(
  flow: { flow_id: string; source: string; destination: string } | null,
  factor: number,
): void {
  const name = flow ? `${flow.source} → ${flow.destination}` : "all demands";
  suppose({ text: `${name} × ${factor}`, scale: { ...(flow ? { flow_id: flow.flow_id } : {}), factor } });
}

/** Look at the network as it is again. */
export function leave(): void {
  preview.value = null;
  previewPaths.value = [];
}

function titleOf(asked: readonly Supposition[]): string {
  const parts = asked.map((each) => each.text);
  return parts.length > 3 ? `${parts.slice(0, 3).join(", ")} and ${parts.length - 3} more` : parts.join(", ");
}

function bodyOf(asked: readonly Supposition[]): PreviewRequest {
  return {
    fail: {
      links: asked.flatMap((each) => ("link" in each ? [each.link] : [])),
      switches: asked.flatMap((each) => ("node" in each ? [each.node] : [])),
    },
    scale: asked.flatMap((each) => ("scale" in each ? [each.scale] : [])),
    add: asked.flatMap((each) => ("add" in each ? [{ ...each.add, destination_port: 5001 }] : [])),
  };
}

export function WhatIf() {
  const [refusal, setRefusal] = useState("");
  const [isAsking, setAsking] = useState(false);
  const asked = question.value;
  const submit = async (): Promise<void> => {
    setAsking(true);
    setRefusal("");
    previewPaths.value = [];
    await ask(bodyOf(asked), titleOf(asked)).catch((error: unknown) => setRefusal(sentence(error)));
    setAsking(false);
  };
  const clear = (): void => {
    question.value = [];
    setRefusal("");
    leave();
  };
  return (
    <div class="stack whatif">
      <p class="quiet">
        Suppose failures, growth and new flows together. The controller computes the best that would follow, and
        installs nothing.
      </p>
      <FailForm />
      <ScaleForm />
      <AddForm />
      <Chips />
      {refusal ? <Notice tone="bad" title={refusal} /> : null}
      <div class="actions">
        <button disabled={asked.length === 0 && !preview.value} onClick={clear}>
          Clear
        </button>
        <button class="primary" disabled={asked.length === 0 || isAsking} onClick={() => void submit()}>
          {isAsking ? "Computing…" : "Show what would happen"}
        </button>
      </div>
      {preview.value ? <Answer title={preview.value.title} answer={preview.value.answer} /> : null}
    </div>
  );
}

interface FormProps {
  label: string;
  /** Of the first control. */
  id: string;
  /** Returns what is wrong; empty if it was added. */
  add: () => string;
  children: ComponentChildren;
}

function Form({ label, id, add, children }: FormProps) {
  const [hint, setHint] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    setHint(add());
  };
  return (
    <form class="suppose" onSubmit={submit} noValidate>
      <label for={id}>{label}</label>
      <div class="suppose-fields">{children}</div>
      <button type="submit">Add</button>
      <span class="suppose-hint" role="status">
        {hint}
      </span>
    </form>
  );
}

function FailForm() {
  const [name, setName] = useState("");
  const add = (): string => {
    const wanted = name.trim();
    const turned = wanted.split("-").reverse().join("-");
    const link = linkNames.value.find((each) => each === wanted || each === turned);
    if (!link && !switchNames.value.includes(wanted))
      return wanted ? `There is no link or switch “${wanted}”.` : "Write the name of a link or a switch.";
    supposeFailure(link ?? wanted, link ? "link" : "node");
    setName("");
    return "";
  };
  return (
    <Form label="Fail" id="fail-name" add={add}>
      <input
        id="fail-name"
        list="fail-names"
        placeholder="link or switch, as S2-S3"
        value={name}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <Names id="fail-names" names={[...linkNames.value, ...switchNames.value]} />
    </Form>
  );
}

function ScaleForm() {
  const [flowId, setFlowId] = useState("");
  const [factor, setFactor] = useState("2");
  const scalable = flows.value.filter((flow) => flow.objective !== null);
  const add = (): string => {
    const value = Number(factor.replace(",", "."));
    if (!(value > 0)) return "A factor is a number above 0, as 1.5.";
    supposeScaled(scalable.find((each) => each.flow_id === flowId) ?? null, value);
    return "";
  };
  return (
    <Form label="Scale" id="scale-flow" add={add}>
      <select id="scale-flow" value={flowId} onChange={(event) => setFlowId(event.currentTarget.value)}>
        <option value="">all demands</option>
        {scalable.slice(0, 2000).map((flow) => (
          <option key={flow.flow_id} value={flow.flow_id}>
            {flow.source} → {flow.destination} :{flow.destination_port}
          </option>
        ))}
      </select>
      <span aria-hidden="true">×</span>
      <input
        class="factor"
        aria-label="Factor"
        inputMode="decimal"
        value={factor}
        onInput={(event) => setFactor(event.currentTarget.value)}
      />
    </Form>
  );
}

const NO_FLOW = { source: "", destination: "", rate: "" };

function AddForm() {
  const [wanted, setWanted] = useState(NO_FLOW);
  const add = (): string => {
    const [source, destination, rate_bps] = [
      wanted.source.trim(),
      wanted.destination.trim(),
      parseBitrate(wanted.rate),
    ];
    if (!source || !destination) return "Name the hosts at both ends.";
    if (rate_bps === null) return "Write a rate with k, M or G, as 8.5M.";
    suppose({ text: `new ${source} → ${destination}, ${bitrate(rate_bps)}`, add: { source, destination, rate_bps } });
    setWanted(NO_FLOW);
    return "";
  };
  const input = (name: keyof typeof NO_FLOW, label: string, placeholder: string) => (
    <input
      id={`add-${name}`}
      list={name === "rate" ? undefined : "whatif-hosts"}
      placeholder={placeholder}
      aria-label={label}
      value={wanted[name]}
      onInput={(event) => setWanted({ ...wanted, [name]: event.currentTarget.value })}
      autocomplete="off"
    />
  );
  return (
    <Form label="New flow" id="add-source" add={add}>
      {input("source", "From", "from")}
      {input("destination", "To", "to")}
      {input("rate", "Rate", "8.5M")}
      <Names id="whatif-hosts" names={hostNames.value} />
    </Form>
  );
}

function Chips() {
  const asked = question.value;
  if (asked.length === 0) return <p class="chips-none">Nothing is supposed yet.</p>;
  const drop = (one: Supposition): void => {
    question.value = asked.filter((each) => each !== one);
  };
  return (
    <ul class="chips" aria-label="Supposed">
      {asked.map((each) => (
        <li key={each.text}>
          {each.text}
          <button class="icon" aria-label={`Remove: ${each.text}`} onClick={() => drop(each)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

const changeOf = (link: PreviewLinkView): number => Math.abs(link.utilisation_after - link.utilisation_before);

function Answer({ title, answer }: { title: string; answer: PreviewView }) {
  const { summary } = answer;
  const links = answer.links
    .filter((link) => link.up && changeOf(link) > 0.005)
    .sort((a, b) => changeOf(b) - changeOf(a));
  const isUnchanged = answer.added.length === 0 && answer.flows.length === 0 && links.length === 0;
  return (
    <section class="answer" aria-label="What would happen">
      <h3>If {title}</h3>
      <div class="tiles" role="status">
        {answer.added.length > 0 ? (
          <Tile value={`${summary.admitted} of ${answer.added.length}`} word="admitted" />
        ) : null}
        <Tile value={summary.moved} word="moved" />
        <Tile value={summary.lost} word="lost" isBad={summary.lost > 0} />
        <Tile value={summary.rate_changed} word="rate changed" />
      </div>
      <Facts
        facts={[
          [
            "Goodput of all flows",
            <Change before={bitrate(summary.rate_before_bps)} after={bitrate(summary.rate_after_bps)} />,
          ],
          [
            "Busiest link",
            <Change before={percent(summary.max_utilisation_before)} after={percent(summary.max_utilisation_after)} />,
          ],
        ]}
      />
      {isUnchanged ? (
        <Notice tone="good" title="Nothing would change">
          No flow would move, and all links would carry what they do now.
        </Notice>
      ) : null}
      {answer.added.map((flow, index) => (
        <AddedRow key={index} flow={flow} />
      ))}
      <Rows
        rows={answer.flows.map((flow) => ({
          key: flow.flow_id,
          name: <Moved flow={flow} />,
          value: <Change before={bitrate(flow.rate_before_bps)} after={bitrate(flow.rate_after_bps)} />,
        }))}
        most={100}
        more="the map shows the utilisation"
      />
      {links.length > 0 ? <h3>Links</h3> : null}
      <Rows
        rows={links.map((link) => ({
          key: link.link,
          name: link.link.replace("->", " → "),
          value: <Change before={percent(link.utilisation_before)} after={percent(link.utilisation_after)} />,
        }))}
        most={12}
        more="the map shows all"
      />
    </section>
  );
}

const OUTCOMES = { moved: ["warn", "moved"], rate_changed: ["plain", "rate changed"], lost: ["bad", "lost"] } as const;

function Moved({ flow }: { flow: MovedFlowView }) {
  const [tone, word] = OUTCOMES[flow.outcome];
  const show = (): void => {
    previewPaths.value = flow.paths_after;
  };
  return (
    <>
      <Badge tone={tone}>{word}</Badge>{" "}
      <button class="link" title="Show its paths on the map" onClick={show}>
        {flow.source} → {flow.destination}
      </button>
    </>
  );
}

function Change({ before, after }: { before: string; after: string }) {
  return (
    <>
      {before} → <b>{after}</b>
    </>
  );
}

function Tile({ value, word, isBad }: { value: string | number; word: string; isBad?: boolean }) {
  return (
    <div class={`tile ${isBad ? "tile-bad" : ""}`}>
      <b>{value}</b>
      <span>{word}</span>
    </div>
  );
}

function AddedRow({ flow }: { flow: AddedFlowView }) {
  if (!flow.granted)
    return (
      <Notice tone="bad" title={`${flow.source} → ${flow.destination} would be refused`}>
        {flow.refusal ? `${flow.refusal.field}: ${flow.refusal.reason}` : ""}
      </Notice>
    );
  const show = (): void => {
    previewPaths.value = flow.paths;
  };
  return (
    <Notice
      tone="good"
      title={`${flow.source} → ${flow.destination} would get ${bitrate(flow.rate_bps)} of ${bitrate(flow.requested_bps)}`}
    >
      over {plural(flow.paths.length, "path")}.{" "}
      <button class="link" onClick={show}>
        Show on the map
      </button>
    </Notice>
  );
}
