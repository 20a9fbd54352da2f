/** The controller's page: map, flows, and beside them what is selected, what happened, what if, and health. */
import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Names } from "../shared/dialog.tsx";
import { bitrate, clock, percent, plural } from "../shared/format.ts";
import { bearer, needsToken, setBearer, tokenRefusal } from "../shared/http.ts";
import { MapLegend, NetworkMapView } from "../shared/map.tsx";
import { isNarrow } from "../shared/narrow.ts";
import { Badge, Loading, Notice } from "../shared/notices.tsx";
import { PageHead } from "../shared/page.tsx";
import { Segments } from "../shared/segments.tsx";
import { TabPanel, Tabs } from "../shared/tabs.tsx";
import { dialog, done } from "./actions.ts";
import { Details } from "./details.tsx";
import { Dialogs } from "./dialogs.tsx";
import { Flows } from "./flows.tsx";
import { Health } from "./health.tsx";
import {
  connectedSwitches,
  connection,
  flows,
  hostNames,
  isMeasured,
  linkNames,
  live,
  loadKind,
  mapLinks,
  mapNodes,
  preview,
  previewLinks,
  select,
  selectedFlow,
  selection,
  switchNames,
  topology,
} from "./store.ts";
import { Timeline } from "./timeline.tsx";
import { leave, previewPaths, tab, WhatIf } from "./whatif.tsx";

const DEFAULT_TAB = { id: "events", title: "Events", Panel: Timeline };
const TABS = [
  { id: "details", title: "Details", Panel: Details },
  DEFAULT_TAB,
  { id: "whatif", title: "What if", Panel: WhatIf },
  { id: "health", title: "Health", Panel: Health },
];

/** The state of the network, as far as it is known. */
function Status() {
  const { state } = connection.value;
  if (needsToken.value) return <Badge tone="warn">token needed</Badge>;
  if (state === "lost") return <Badge tone="bad">disconnected</Badge>;
  if (state === "loading" || !live.value) return <Badge tone="plain">connecting</Badge>;
  if (connectedSwitches.value === 0) return <Badge tone="bad">no switches</Badge>;
  const isWhole = connectedSwitches.value === switchNames.value.length && mapLinks.value.every((link) => link.up);
  return isWhole ? <Badge tone="good">live</Badge> : <Badge tone="warn">degraded</Badge>;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Summary() {
  const links = mapLinks.value;
  const down = links.filter((link) => !link.up);
  const busiest = links
    .filter((link) => link.up && (link.utilisation ?? 0) > 0)
    .sort((a, b) => (b.utilisation ?? 0) - (a.utilisation ?? 0))[0];
  const total = (key: "rate_bps" | "requested_bps"): string =>
    bitrate(flows.value.reduce((sum, flow) => sum + flow[key], 0));
  const [connected, switches] = [connectedSwitches.value, switchNames.value.length];
  return (
    <dl class="summary">
      <Fact name="Granted">
        {total("rate_bps")} <span class="quiet">of {total("requested_bps")}</span>
      </Fact>
      <Fact name="Busiest link">
        {busiest ? (
          <button class="link" onClick={() => select({ kind: "link", id: busiest.id })}>
            {busiest.id} {percent(busiest.utilisation)}
          </button>
        ) : (
          "–"
        )}
      </Fact>
      <Fact name="Links down">
        {down[0] ? (
          <button class="link bad" onClick={() => select({ kind: "link", id: down[0]?.id ?? "" })}>
            {down.length === 1 ? down[0].id : down.length}
          </button>
        ) : (
          "none"
        )}
      </Fact>
      <Fact name="Switches">
        {connected < switches ? (
          <span class="bad">
            {connected} of {switches}
            <span class="quiet"> connected</span>
          </span>
        ) : (
          "all connected"
        )}
      </Fact>
    </dl>
  );
}

function Header() {
  const network = topology.value;
  const sizes = `${plural(switchNames.value.length, "switch", "switches")}, ${plural(hostNames.value.length, "host")}`;
  return (
    <PageHead title={network?.name ?? "MSTCP controller"} subtitle={network ? sizes : " "} status={<Status />}>
      {network ? <Summary /> : null}
      <div class="row head-buttons">
        <a class="wide-only" href="/docs">
          API
        </a>
        {bearer() !== null && !needsToken.value ? <button onClick={() => setBearer(null)}>Forget token</button> : null}
      </div>
    </PageHead>
  );
}

function Banner() {
  const now = connection.value;
  if (now.state !== "lost" || needsToken.value) return null;
  const since = clock(now.since_ms / 1000);
  return (
    <div class="banner" role="alert">
      <strong>Disconnected since {since}:</strong> {now.reason}. What is shown is from then; the page tries again every
      few seconds. Look whether mstcp-controller runs at {location.host}.
    </div>
  );
}

function TokenCard() {
  const [token, setToken] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim()) setBearer(token.trim());
  };
  return (
    <main class="page-message">
      <form class="card token-card" onSubmit={submit}>
        <h2>This controller asks for a token</h2>
        <p class="quiet">
          It is one of those in its configuration (<code>access.tokens</code>), as REST takes it. It is kept until this
          tab is closed.
        </p>
        <label class="field">
          <span class="field-label">Token</span>
          <input
            type="password"
            value={token}
            autofocus
            autocomplete="off"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {tokenRefusal.value ? <Notice tone="bad" title={tokenRefusal.value} /> : null}
        <button class="primary" type="submit">
          Use it
        </button>
      </form>
    </main>
  );
}

function FindOnMap() {
  const [name, setName] = useState("");
  const find = (text: string): void => {
    setName(text);
    if (linkNames.value.includes(text)) select({ kind: "link", id: text });
    else if (mapNodes.value.some((each) => each.id === text)) select({ kind: "node", id: text });
  };
  return (
    <>
      <input
        type="search"
        class="find"
        placeholder="Find node or link"
        aria-label="Find a node or link"
        list="map-names"
        value={name}
        onInput={(event) => find(event.currentTarget.value)}
      />
      <Names id="map-names" names={[...switchNames.value, ...hostNames.value, ...linkNames.value]} />
    </>
  );
}

function MapCard() {
  const network = topology.value;
  const answer = preview.value;
  const paths = answer
    ? previewPaths.value.map((path) => ({ nodes: path.path, rate_bps: path.rate_bps }))
    : (selectedFlow.value?.streams ?? []).map((stream) => ({ nodes: stream.path, rate_bps: stream.rate_bps }));
  return (
    <section class={`card map-card ${answer ? "supposed" : ""}`} aria-label="Network">
      <div class="card-head">
        <h2>{answer ? "What if" : "Network"}</h2>
        {answer ? <span class="quiet ellipsis">{answer.title}: nothing is installed</span> : null}
        <span class="spacer" />
        {answer ? (
          <button onClick={leave}>Back to the network</button>
        ) : (
          <>
            <FindOnMap />
            <Segments
              label="Colour links by"
              segments={[
                { id: "allocated", title: "Allocated" },
                { id: "measured", title: "Measured", isDisabled: !isMeasured.value, hint: "What switches count" },
              ]}
              current={loadKind.value}
              onChange={(kind) => {
                loadKind.value = kind;
              }}
            />
          </>
        )}
      </div>
      {network ? (
        <NetworkMapView
          name={network.name}
          nodes={mapNodes.value}
          links={previewLinks.value ?? mapLinks.value}
          paths={paths}
          selected={selection.value}
          onSelect={select}
        />
      ) : (
        <Loading what="the network" />
      )}
      <MapLegend
        title={
          answer
            ? "Utilisation afterwards"
            : loadKind.value === "measured"
              ? "Measured utilisation"
              : "Allocated utilisation"
        }
      />
    </section>
  );
}

function Side() {
  const tabs = isNarrow.value ? [{ id: "flows", title: "Flows", Panel: Flows }, ...TABS] : TABS;
  const { id, Panel } = tabs.find((each) => each.id === tab.value) ?? DEFAULT_TAB;
  const open = (wanted: string): void => {
    tab.value = wanted;
  };
  return (
    <section class="card side" aria-label="About the network">
      <Tabs label="About the network" tabs={tabs} current={id} onChange={open} />
      <TabPanel id={id}>
        <Panel />
      </TabPanel>
    </section>
  );
}

/** Say for a few seconds what was done. */
function Toast() {
  useEffect(() => {
    if (!done.value) return undefined;
    const timer = setTimeout(() => {
      done.value = "";
    }, 6000);
    return () => clearTimeout(timer);
  }, [done.value]);
  return (
    <div class={`toast ${done.value ? "shown" : ""}`} role="status">
      {done.value}
    </div>
  );
}

export function App() {
  useSignalEffect(() => {
    if (selection.value !== null && (tab.peek() !== "whatif" || preview.peek() === null)) tab.value = "details";
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !dialog.value && !(event.target instanceof HTMLInputElement)) select(null);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  useSignalEffect(() => {
    document.title = `${topology.value ? `${topology.value.name} – ` : ""}MSTCP controller`;
  });
  const isStale = connection.value.state === "lost";
  return (
    <div class="page">
      <Header />
      <Banner />
      {needsToken.value ? (
        <TokenCard />
      ) : !live.value && isStale ? (
        <main class="page-message">
          <Notice title="No answer yet">The page goes on trying.</Notice>
        </main>
      ) : (
        <main class={`areas ${isStale ? "stale" : ""}`} aria-busy={!live.value}>
          <MapCard />
          {isNarrow.value ? null : <Flows />}
          <Side />
        </main>
      )}
      <Dialogs />
      <Toast />
    </div>
  );
}
