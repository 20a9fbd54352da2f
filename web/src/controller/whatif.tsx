/** What would happen if: choose, ask the controller, look; nothing is installed. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { bitrate, parseBitrate, percent, plural } from "../shared/format.ts";
import { isNarrow } from "../shared/narrow.ts";
import { Badge, Notice } from "../shared/notices.tsx";
import { ask, sentence } from "./actions.ts";
import type { AddedFlowView, MovedFlowView, PreviewPathView, PreviewView } from "./rest.ts";
import { flows, preview, topology } from "./store.ts";

interface Scaled {
  flow_id: string | null;
  factor: number;
  name: string;
}
interface Added {
  source: string;
  destination: string;
  rate_bps: number;
}

interface Question {
  links: readonly string[];
  switches: readonly string[];
  scaled: readonly Scaled[];
  added: readonly Added[];
}

const NOTHING: Question = { links: [], switches: [], scaled: [], added: [] };

const question = signal<Question>(NOTHING);
/** Paths of the answer that are looked at; they are drawn on the map. */
export const previewPaths = signal<readonly PreviewPathView[]>([]);
/** Which tab is open; the panel opens itself when something is to be supposed. */
export const tab = signal(isNarrow.peek() ? "flows" : "events");

/** Add something to the question, and open the panel. */
export function suppose(what: { link?: string; node?: string; scale?: Scaled }): void {
  const now = question.value;
  question.value = {
    ...now,
    links: what.link === undefined ? now.links : [...new Set([...now.links, what.link])],
    switches: what.node === undefined ? now.switches : [...new Set([...now.switches, what.node])],
    scaled:
      what.scale === undefined
        ? now.scaled
        : [...now.scaled.filter((each) => each.flow_id !== what.scale?.flow_id), what.scale],
  };
  tab.value = "whatif";
}

/** Look at the network as it is again. */
export function leave(): void {
  preview.value = null;
  previewPaths.value = [];
}

function titleOf(asked: Question): string {
  const parts = [
    ...asked.links.map((link) => `${link} fails`),
    ...asked.switches.map((name) => `${name} fails`),
    ...asked.scaled.map((each) => `${each.name} × ${each.factor}`),
    ...asked.added.map((each) => `new ${each.source} → ${each.destination} of ${bitrate(each.rate_bps)}`),
  ];
  return parts.length > 3 ? `${parts.slice(0, 3).join(", ")} and ${parts.length - 3} more` : parts.join(", ");
}

function isEmpty(asked: Question): boolean {
  return asked.links.length + asked.switches.length + asked.scaled.length + asked.added.length === 0;
}

export function WhatIf() {
  const [refusal, setRefusal] = useState("");
  const [isAsking, setAsking] = useState(false);
  const asked = question.value;
  const submit = async (): Promise<void> => {
    setAsking(true);
    setRefusal("");
    previewPaths.value = [];
    try {
      const scale = asked.scaled.map((each) =>
        each.flow_id === null ? { factor: each.factor } : { flow_id: each.flow_id, factor: each.factor },
      );
      const add = asked.added.map((each) => ({ ...each, destination_port: 5001 }));
      await ask({ fail: { links: [...asked.links], switches: [...asked.switches] }, scale, add }, titleOf(asked));
    } catch (error) {
      setRefusal(sentence(error));
    }
    setAsking(false);
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
        <button
          disabled={isEmpty(asked) && !preview.value}
          onClick={() => {
            question.value = NOTHING;
            setRefusal("");
            leave();
          }}
        >
          Clear
        </button>
        <button class="primary" disabled={isEmpty(asked) || isAsking} onClick={() => void submit()}>
          {isAsking ? "Computing…" : "Show what would happen"}
        </button>
      </div>
      {preview.value ? <Answer title={preview.value.title} answer={preview.value.answer} /> : null}
    </div>
  );
}

function FailForm() {
  const [name, setName] = useState("");
  const [hint, setHint] = useState("");
  const links = (topology.value?.links ?? []).map((link) => link.ends.join("-"));
  const switches = (topology.value?.nodes ?? []).filter((node) => node.kind === "switch").map((node) => node.name);
  const add = (event: Event): void => {
    event.preventDefault();
    const wanted = name.trim();
    const turned = wanted.split("-").reverse().join("-");
    const link = links.find((each) => each === wanted || each === turned);
    if (link) suppose({ link });
    else if (switches.includes(wanted)) suppose({ node: wanted });
    else {
      setHint(wanted ? `There is no link or switch “${wanted}”.` : "Write the name of a link or a switch.");
      return;
    }
    setName("");
    setHint("");
  };
  return (
    <form class="suppose" onSubmit={add} noValidate>
      <label for="fail-name">Fail</label>
      <input
        id="fail-name"
        list="fail-names"
        placeholder="link or switch, as S2-S3"
        value={name}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setName(event.currentTarget.value)}
        aria-describedby="fail-hint"
      />
      <datalist id="fail-names">
        {[...links, ...switches].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button type="submit">Add</button>
      <span id="fail-hint" class="suppose-hint" role="status">
        {hint}
      </span>
    </form>
  );
}

function ScaleForm() {
  const [flowId, setFlowId] = useState("");
  const [factor, setFactor] = useState("2");
  const [hint, setHint] = useState("");
  const scalable = flows.value.filter((flow) => flow.objective !== null);
  const add = (event: Event): void => {
    event.preventDefault();
    const value = Number(factor.replace(",", "."));
    if (!(value > 0)) {
      setHint("A factor is a number above 0, as 1.5.");
      return;
    }
    setHint("");
    const flow = scalable.find((each) => each.flow_id === flowId);
    suppose({
      scale: {
        flow_id: flow?.flow_id ?? null,
        factor: value,
        name: flow ? `${flow.source} → ${flow.destination}` : "all demands",
      },
    });
  };
  return (
    <form class="suppose" onSubmit={add} noValidate>
      <label for="scale-flow">Scale</label>
      <div class="suppose-fields">
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
      </div>
      <button type="submit">Add</button>
      <span class="suppose-hint" role="status">
        {hint}
      </span>
    </form>
  );
}

function AddForm() {
  const [wish, setWish] = useState({ source: "", destination: "", rate: "" });
  const [hint, setHint] = useState("");
  const hosts = (topology.value?.nodes ?? []).filter((node) => node.kind === "host");
  const set = (name: keyof typeof wish) => (event: Event) =>
    setWish({ ...wish, [name]: (event.target as HTMLInputElement).value });
  const add = (event: Event): void => {
    event.preventDefault();
    const rate_bps = parseBitrate(wish.rate);
    if (!wish.source.trim() || !wish.destination.trim()) {
      setHint("Name the hosts at both ends.");
      return;
    }
    if (rate_bps === null) {
      setHint("Write a rate with k, M or G, as 8.5M.");
      return;
    }
    question.value = {
      ...question.value,
      added: [...question.value.added, { source: wish.source.trim(), destination: wish.destination.trim(), rate_bps }],
    };
    setWish({ source: "", destination: "", rate: "" });
    setHint("");
  };
  return (
    <form class="suppose" onSubmit={add} noValidate>
      <label for="add-source">New flow</label>
      <div class="suppose-fields">
        <input
          id="add-source"
          list="whatif-hosts"
          placeholder="from"
          aria-label="From"
          value={wish.source}
          onInput={set("source")}
          autocomplete="off"
        />
        <input
          list="whatif-hosts"
          placeholder="to"
          aria-label="To"
          value={wish.destination}
          onInput={set("destination")}
          autocomplete="off"
        />
        <input placeholder="8.5M" aria-label="Rate" value={wish.rate} onInput={set("rate")} autocomplete="off" />
      </div>
      <datalist id="whatif-hosts">
        {hosts.map((host) => (
          <option key={host.name} value={host.name} />
        ))}
      </datalist>
      <button type="submit">Add</button>
      <span class="suppose-hint" role="status">
        {hint}
      </span>
    </form>
  );
}

function Chips() {
  const asked = question.value;
  const without = <T,>(list: readonly T[], one: T): T[] => list.filter((each) => each !== one);
  const chips = [
    ...asked.links.map((link) => ({
      text: `${link} fails`,
      drop: () => ({ ...asked, links: without(asked.links, link) }),
    })),
    ...asked.switches.map((name) => ({
      text: `${name} fails`,
      drop: () => ({ ...asked, switches: without(asked.switches, name) }),
    })),
    ...asked.scaled.map((each) => ({
      text: `${each.name} × ${each.factor}`,
      drop: () => ({ ...asked, scaled: without(asked.scaled, each) }),
    })),
    ...asked.added.map((each) => ({
      text: `new ${each.source} → ${each.destination}, ${bitrate(each.rate_bps)}`,
      drop: () => ({ ...asked, added: without(asked.added, each) }),
    })),
  ];
  if (chips.length === 0) return <p class="chips-none">Nothing is supposed yet.</p>;
  return (
    <ul class="chips" aria-label="Supposed">
      {chips.map((chip) => (
        <li key={chip.text}>
          {chip.text}
          <button
            class="icon"
            aria-label={`Remove: ${chip.text}`}
            onClick={() => {
              question.value = chip.drop();
            }}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

function Answer({ title, answer }: { title: string; answer: PreviewView }) {
  const { summary } = answer;
  const links = answer.links
    .filter((link) => link.up && Math.abs(link.utilisation_after - link.utilisation_before) > 0.005)
    .sort(
      (a, b) =>
        Math.abs(b.utilisation_after - b.utilisation_before) - Math.abs(a.utilisation_after - a.utilisation_before),
    );
  const isUnchanged = answer.added.length === 0 && answer.flows.length === 0 && links.length === 0;
  return (
    <section class="answer" aria-label="What would happen">
      <h3>If {title}</h3>
      <div class="tiles" role="status">
        {answer.added.length > 0 ? (
          <div class="tile">
            <b>
              {summary.admitted} of {answer.added.length}
            </b>
            <span>admitted</span>
          </div>
        ) : null}
        <div class="tile">
          <b>{summary.moved}</b>
          <span>moved</span>
        </div>
        <div class={`tile ${summary.lost > 0 ? "tile-bad" : ""}`}>
          <b>{summary.lost}</b>
          <span>lost</span>
        </div>
        <div class="tile">
          <b>{summary.rate_changed}</b>
          <span>other rate</span>
        </div>
      </div>
      <dl class="facts">
        <dt>Goodput of all</dt>
        <dd>
          {bitrate(summary.rate_before_bps)} → <b>{bitrate(summary.rate_after_bps)}</b>
        </dd>
        <dt>Fullest link</dt>
        <dd>
          {percent(summary.max_utilisation_before)} → <b>{percent(summary.max_utilisation_after)}</b>
        </dd>
      </dl>
      {isUnchanged ? (
        <Notice tone="good" title="Nothing would change">
          No flow would move, and all links would carry what they do now.
        </Notice>
      ) : null}
      {answer.added.map((flow, index) => (
        <AddedRow key={index} flow={flow} />
      ))}
      {answer.flows.length > 0 ? (
        <ul class="flow-list moved">
          {answer.flows.slice(0, 100).map((flow) => (
            <MovedRow key={flow.flow_id} flow={flow} />
          ))}
        </ul>
      ) : null}
      {answer.flows.length > 100 ? <p class="quiet">and {plural(answer.flows.length - 100, "more flow")}</p> : null}
      {links.length > 0 ? (
        <>
          <h3>Links</h3>
          <ul class="flow-list">
            {links.slice(0, 12).map((link) => (
              <li key={link.link}>
                <span>{link.link.replace("->", " → ")}</span>
                <span>
                  {percent(link.utilisation_before)} → <b>{percent(link.utilisation_after)}</b>
                </span>
              </li>
            ))}
          </ul>
          {links.length > 12 ? <p class="quiet">and {links.length - 12} more; the map shows all</p> : null}
        </>
      ) : null}
    </section>
  );
}

const OUTCOMES = { moved: ["warn", "moved"], rate_changed: ["plain", "other rate"], lost: ["bad", "lost"] } as const;

function MovedRow({ flow }: { flow: MovedFlowView }) {
  const [tone, word] = OUTCOMES[flow.outcome];
  return (
    <li>
      <span>
        <Badge tone={tone}>{word}</Badge>{" "}
        <button
          class="link"
          title="Show its paths on the map"
          onClick={() => {
            previewPaths.value = flow.paths_after;
          }}
        >
          {flow.source} → {flow.destination}
        </button>
      </span>
      <span>
        {bitrate(flow.rate_before_bps)} → <b>{bitrate(flow.rate_after_bps)}</b>
      </span>
    </li>
  );
}

function AddedRow({ flow }: { flow: AddedFlowView }) {
  if (!flow.granted)
    return (
      <Notice tone="bad" title={`${flow.source} → ${flow.destination} would be refused`}>
        {flow.refusal ? `${flow.refusal.field}: ${flow.refusal.reason}` : ""}
      </Notice>
    );
  return (
    <Notice
      tone="good"
      title={`${flow.source} → ${flow.destination} would get ${bitrate(flow.rate_bps)} of ${bitrate(flow.requested_bps)}`}
    >
      over {plural(flow.paths.length, "path")}.{" "}
      <button
        class="link"
        onClick={() => {
          previewPaths.value = flow.paths;
        }}
      >
        Show on the map
      </button>
    </Notice>
  );
}
