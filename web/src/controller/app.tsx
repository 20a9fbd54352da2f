/** The controller's page: map, flows, and beside them what is selected, what happened, what if, and health. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { bitrate, clock, percent, plural } from "../shared/format.ts";
import { bearer, needsToken, setBearer, tokenRefusal } from "../shared/http.ts";
import { MapLegend, NetworkMapView } from "../shared/map.tsx";
import { isNarrow } from "../shared/narrow.ts";
import { Badge, Loading, Notice } from "../shared/notices.tsx";
import { TabPanel, Tabs } from "../shared/tabs.tsx";
import { theme, toggleTheme } from "../shared/theme.ts";
import { dialog, done } from "./actions.ts";
import { Details } from "./details.tsx";
import { Dialogs } from "./dialogs.tsx";
import { Flows } from "./flows.tsx";
import { Health } from "./health.tsx";
import {
  connection,
  flows,
  isMeasured,
  live,
  loadKind,
  mapLinks,
  mapNodes,
  preview,
  previewLinks,
  selectedFlow,
  selection,
  topology,
} from "./store.ts";
import { Timeline } from "./timeline.tsx";
import { leave, previewPaths, tab, WhatIf } from "./whatif.tsx";

const TABS = [
  { id: "details", title: "Details" },
  { id: "events", title: "Events" },
  { id: "whatif", title: "What if" },
  { id: "health", title: "Health" },
];

function Status() {
  const now = connection.value;
  if (needsToken.value) return <Badge tone="warn">token needed</Badge>;
  if (now.state === "loading") return <Badge tone="plain">connecting</Badge>;
  return now.state === "live" ? <Badge tone="good">live</Badge> : <Badge tone="bad">disconnected</Badge>;
}

function Summary() {
  const links = mapLinks.value;
  const down = links.filter((link) => !link.up);
  const away = mapNodes.value.filter((node) => node.kind === "switch" && node.state !== "up").length;
  const fullest = links.reduce<(typeof links)[number] | null>(
    (most, link) => (link.up && (link.utilisation ?? -1) > (most?.utilisation ?? -1) ? link : most),
    null,
  );
  const granted = flows.value.reduce((sum, flow) => sum + flow.rate_bps, 0);
  const asked = flows.value.reduce((sum, flow) => sum + flow.requested_bps, 0);
  const choose = (id: string) => (): void => {
    selection.value = { kind: "link", id };
  };
  return (
    <dl class="summary">
      <div>
        <dt>Granted</dt>
        <dd>
          {bitrate(granted)} <span class="quiet">of {bitrate(asked)}</span>
        </dd>
      </div>
      <div>
        <dt>Fullest link</dt>
        <dd>
          {fullest && (fullest.utilisation ?? 0) > 0 ? (
            <button class="link" onClick={choose(fullest.id)}>
              {fullest.id} {percent(fullest.utilisation)}
            </button>
          ) : (
            "–"
          )}
        </dd>
      </div>
      <div>
        <dt>Links down</dt>
        <dd>
          {down[0] ? (
            <button class="link bad" onClick={choose(down[0].id)}>
              {down.length === 1 ? down[0].id : down.length}
            </button>
          ) : (
            "none"
          )}
        </dd>
      </div>
      <div>
        <dt>Switches</dt>
        <dd>{away > 0 ? <span class="bad">{away} not connected</span> : "all connected"}</dd>
      </div>
    </dl>
  );
}

function Header() {
  const network = topology.value;
  const count = (kind: string): number => network?.nodes.filter((node) => node.kind === kind).length ?? 0;
  return (
    <header class="page-head">
      <div class="page-name">
        <img src="page/icon.svg" alt="" />
        <div>
          <h1>{network?.name ?? "MSTCP controller"}</h1>
          <div class="quiet">
            {network ? `${plural(count("switch"), "switch", "switches")}, ${plural(count("host"), "host")}` : " "}
          </div>
        </div>
      </div>
      <Status />
      <span class="spacer" />
      {topology.value ? <Summary /> : null}
      <div class="row head-buttons">
        <a class="wide-only" href="/docs">
          API
        </a>
        {bearer() !== null && !needsToken.value ? <button onClick={() => setBearer(null)}>Forget token</button> : null}
        <button
          class="icon"
          onClick={toggleTheme}
          aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}
          title={theme.value === "dark" ? "Light colours" : "Dark colours"}
        >
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
      </div>
    </header>
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
    const link = mapLinks.value.find((each) => each.id === text);
    const node = mapNodes.value.find((each) => each.id === text);
    if (link) selection.value = { kind: "link", id: link.id };
    else if (node) selection.value = { kind: "node", id: node.id };
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
      <datalist id="map-names">
        {[...mapNodes.value, ...mapLinks.value].map((each) => (
          <option key={each.id} value={each.id} />
        ))}
      </datalist>
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
            <div class="segments" role="group" aria-label="Colour links by">
              <button
                aria-pressed={loadKind.value === "allocated"}
                onClick={() => {
                  loadKind.value = "allocated";
                }}
              >
                Allocated
              </button>
              <button
                aria-pressed={loadKind.value === "measured"}
                disabled={!isMeasured.value}
                title={isMeasured.value ? "What switches count" : "The controller counts nothing yet"}
                onClick={() => {
                  loadKind.value = "measured";
                }}
              >
                Measured
              </button>
            </div>
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
          onSelect={(chosen) => {
            selection.value = chosen;
          }}
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
  const tabs = isNarrow.value ? [{ id: "flows", title: "Flows" }, ...TABS] : TABS;
  const current = tabs.some((each) => each.id === tab.value) ? tab.value : "events";
  return (
    <section class="card side" aria-label="About the network">
      <Tabs
        label="About the network"
        tabs={tabs}
        current={current}
        onChange={(id) => {
          tab.value = id;
        }}
      />
      <TabPanel id={current}>
        {current === "flows" ? (
          <Flows />
        ) : current === "details" ? (
          <Details />
        ) : current === "events" ? (
          <Timeline />
        ) : current === "whatif" ? (
          <WhatIf />
        ) : (
          <Health />
        )}
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
      if (event.key === "Escape" && !dialog.value && !(event.target instanceof HTMLInputElement))
        selection.value = null;
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
