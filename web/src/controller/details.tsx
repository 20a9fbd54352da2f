/** What is selected: a flow with its paths, a link with its flows, a switch or a host. */
import type { ComponentChildren } from "preact";
import { Chart, type Line } from "../shared/chart.tsx";
import { Facts } from "../shared/facts.tsx";
import { bitrate, duration, percent, plural, remaining } from "../shared/format.ts";
import { Badge, Empty } from "../shared/notices.tsx";
import { levelOf } from "../shared/utilisation.ts";
import { done, openDialog, renewFlow, sentence } from "./actions.ts";
import { isShort } from "./flows.tsx";
import { measuredGoodput, measuredOf } from "./history.ts";
import type { FlowSummaryView } from "./rest.ts";
import { Rows } from "./rows.tsx";
import {
  type DirectionNow,
  directionsOf,
  flowHistory,
  flows,
  live,
  mapLinks,
  mapNodes,
  select,
  selectedFlow,
  selection,
} from "./store.ts";
import { supposeFailure, supposeScaled } from "./whatif.tsx";

/** Whether a flow's paths lead over a link, in either direction. */
function usesLink(flow: FlowSummaryView, link: string): boolean {
  return flow.streams.some((stream) =>
    stream.path.slice(1).some((node, index) => {
      const before = stream.path[index] ?? "";
      return link === `${before}-${node}` || link === `${node}-${before}`;
    }),
  );
}

function Title({ kind, name, children }: { kind: string; name: string; children?: ComponentChildren }) {
  return (
    <header class="details-head">
      <div>
        <div class="quiet">{kind}</div>
        <h2>{name}</h2>
      </div>
      <span class="spacer" />
      {children}
      <button class="icon" aria-label="Close the details" title="Close (Esc)" onClick={() => select(null)}>
        ×
      </button>
    </header>
  );
}

function FlowDetails({ flow }: { flow: FlowSummaryView }) {
  const samples = flowHistory.of(flow.flow_id).filter((sample) => sample.granted.length === flow.streams.length);
  const measured = measuredOf(flow);
  const times = samples.map((sample) => sample.time_s);
  const lines = flow.streams.flatMap((_, index) => {
    const line = (kind: "granted" | "measured", more: Partial<Line>): Line => ({
      label: `path ${index + 1} ${kind}`,
      colour: index,
      values: samples.map((sample) => sample[kind][index] ?? null),
      ...more,
    });
    return measured === null ? [line("granted", {})] : [line("granted", { dashed: true }), line("measured", {})];
  });
  const renew = (): void =>
    void renewFlow(flow).catch((error: unknown) => {
      done.value = sentence(error);
    });
  return (
    <>
      <Title kind="Flow" name={`${flow.source} → ${flow.destination}`}>
        <FlowBadge flow={flow} />
      </Title>
      <div class="stack">
        <Facts
          facts={[
            ["Requested", bitrate(flow.requested_bps)],
            ["Granted", <span class={isShort(flow) ? "short" : ""}>{bitrate(flow.rate_bps)}</span>],
            ["Measured", measured === null ? <span class="quiet">not counted</span> : bitrate(measured)],
            ["Lease", `${remaining(flow.expires_in_s)} left of ${duration(flow.lease_s)}`],
            ["Destination port", flow.destination_port],
            ["Objective", flow.objective ?? "manual paths"],
            ["Owner", flow.owner],
            ["Id", <span class="mono">{flow.flow_id}</span>],
          ]}
        />
        <section>
          <h3>{plural(flow.streams.length, "path")}</h3>
          <ol class="paths">
            {flow.streams.map((stream, index) => (
              <li key={`${stream.source_port} ${index}`}>
                <i class="swatch" style={{ borderColor: `var(--series-${index % 6})` }} aria-hidden="true" />
                <div>
                  <div class="path-rate">
                    <b>{bitrate(stream.rate_bps)}</b>
                    {measuredGoodput(stream) === null ? null : (
                      <span>, measured {bitrate(measuredGoodput(stream))}</span>
                    )}
                  </div>
                  <div class="path-nodes">{stream.path.join(" → ")}</div>
                  <div class="quiet">
                    delay {duration(stream.delay_s)}, source port {stream.source_port}
                  </div>
                </div>
              </li>
            ))}
          </ol>
        </section>
        <section>
          <h3>Rate of each stream</h3>
          {times.length > 1 ? (
            <Chart
              label={`Rate of each stream of ${flow.source} to ${flow.destination} over time`}
              times={times}
              lines={lines}
              format={bitrate}
              height={150}
              atLeast={Math.max(...flow.streams.map((stream) => stream.rate_bps))}
            />
          ) : (
            <div class="chart-wait quiet">Recording starts now.</div>
          )}
        </section>
        <div class="actions left">
          <button onClick={() => openDialog({ kind: "change", flow })}>Change rate…</button>
          <button onClick={renew}>Renew lease</button>
          <button onClick={() => supposeScaled(flow, 2)}>What if it doubles?</button>
          <button class="danger" onClick={() => openDialog({ kind: "release", flow })}>
            Release…
          </button>
        </div>
      </div>
    </>
  );
}

function FlowBadge({ flow }: { flow: FlowSummaryView }) {
  if (flow.lost_links.length > 0) return <Badge tone="bad">on a failed link</Badge>;
  if (flow.state === "installing") return <Badge tone="plain">installing</Badge>;
  return isShort(flow) ? <Badge tone="warn">less than requested</Badge> : <Badge tone="good">active</Badge>;
}

function Direction({ direction }: { direction: DirectionNow }) {
  const use = direction.capacity_bps > 0 ? direction.allocated_bps / direction.capacity_bps : 0;
  const measured = direction.measured_bps === null ? null : direction.measured_bps / direction.capacity_bps;
  return (
    <div class="direction">
      <div class="row">
        <b>
          {direction.tail} → {direction.head}
        </b>
        <span class="spacer" />
        <span>{percent(use)} allocated</span>
      </div>
      <div
        class="meter"
        role="meter"
        aria-label={`${direction.tail} to ${direction.head}, allocated`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(Math.min(1, use) * 100)}
      >
        <i class={`use-${levelOf(use)}`} style={{ width: `${Math.min(1, use) * 100}%` }} />
        {measured === null ? null : <b style={{ left: `${Math.min(0.99, measured) * 100}%` }} />}
      </div>
      <div class="quiet">
        {bitrate(direction.allocated_bps)} of {bitrate(direction.capacity_bps)},{" "}
        {direction.measured_bps === null
          ? "not measured"
          : `measured ${bitrate(direction.measured_bps)} (${percent(measured)})`}
      </div>
      {(direction.unrequested_bps ?? 0) > 0 ? (
        <div class="unrequested">{bitrate(direction.unrequested_bps)} of it belong to no flow</div>
      ) : null}
    </div>
  );
}

function Select({ kind, id, children }: { kind: "flow" | "link"; id: string; children: ComponentChildren }) {
  return (
    <button class="link" onClick={() => select({ kind, id })}>
      {children}
    </button>
  );
}

function FlowList({ of, list }: { of: string; list: readonly FlowSummaryView[] }) {
  return (
    <section>
      <h3>
        {plural(list.length, "flow")} {of}
      </h3>
      {list.length === 0 ? <p class="quiet">None is planned over it.</p> : null}
      <Rows
        rows={list.map((flow) => ({
          key: flow.flow_id,
          name: (
            <Select kind="flow" id={flow.flow_id}>
              {flow.source} → {flow.destination} <span class="quiet">:{flow.destination_port}</span>
            </Select>
          ),
          value: bitrate(flow.rate_bps),
        }))}
        more="the table finds them by their ends"
      />
    </section>
  );
}

function LinkDetails({ name }: { name: string }) {
  const both = directionsOf(name);
  const first = both[0];
  if (!first) return <Missing what={`link ${name}`} />;
  const isUp = both.every((direction) => direction.up);
  return (
    <>
      <Title kind="Link" name={name}>
        <Badge tone={!first.enabled ? "warn" : isUp ? "good" : "bad"}>
          {!first.enabled ? "disabled" : isUp ? "up" : "down"}
        </Badge>
      </Title>
      <div class="stack">
        <Facts
          facts={[
            ["Capacity", bitrate(first.capacity_bps)],
            ["Delay", duration(first.delay_s)],
          ]}
        />
        {both.map((direction) => (
          <Direction key={direction.tail} direction={direction} />
        ))}
        <p class="quiet">Rates of links are wire rates: with headers and acknowledgements.</p>
        <FlowList of="over it" list={flows.value.filter((flow) => usesLink(flow, name))} />
        <div class="actions left">
          <button onClick={() => supposeFailure(name, "link")}>What if it fails?</button>
          <button
            class={first.enabled ? "danger" : ""}
            onClick={() => openDialog({ kind: "link", link: name, enable: !first.enabled })}
          >
            {first.enabled ? "Disable…" : "Enable…"}
          </button>
        </div>
      </div>
    </>
  );
}

function NodeDetails({ name }: { name: string }) {
  const node = mapNodes.value.find((each) => each.id === name);
  if (!node) return <Missing what={name} />;
  const tone = node.state === "up" ? "good" : node.state === "away" ? "warn" : "bad";
  const words = {
    up: node.kind === "switch" ? "connected" : "reachable",
    away: "away",
    down: node.kind === "switch" ? "not connected" : "not reachable",
  };
  const links = mapLinks.value.filter((link) => link.ends.includes(name));
  return (
    <>
      <Title kind={node.kind === "switch" ? "Switch" : "Host"} name={name}>
        <Badge tone={tone}>{words[node.state]}</Badge>
      </Title>
      <div class="stack">
        {node.kind === "switch" ? <Facts facts={[["Rules it should have", live.value?.rules[name] ?? "–"]]} /> : null}
        {node.state === "away" ? (
          <p class="quiet">Its connection ended a moment ago; it is assumed to forward still.</p>
        ) : null}
        <section>
          <h3>{plural(links.length, "link")}</h3>
          <Rows
            rows={links.map(({ id }) => {
              const both = directionsOf(id);
              const use = Math.max(0, ...both.map((direction) => direction.allocated_bps / direction.capacity_bps));
              return {
                key: id,
                name: (
                  <Select kind="link" id={id}>
                    {id}
                  </Select>
                ),
                value: both.every((direction) => direction.up) ? percent(use) : "down",
              };
            })}
          />
        </section>
        <FlowList
          of={node.kind === "switch" ? "through it" : "from or to it"}
          list={flows.value.filter((flow) => flow.streams.some((stream) => stream.path.includes(name)))}
        />
        {node.kind === "switch" ? (
          <div class="actions left">
            <button onClick={() => supposeFailure(name, "node")}>What if it fails?</button>
          </div>
        ) : null}
      </div>
    </>
  );
}

function Missing({ what }: { what: string }) {
  return (
    <>
      <Title kind="Selected" name={what} />
      <Empty title={`There is no ${what} any more`}>It has ended, or the network is another one now.</Empty>
    </>
  );
}

export function Details() {
  const chosen = selection.value;
  if (!chosen)
    return (
      <Empty title="Nothing is selected">Choose a link, a switch or a host on the map, or a flow in the table.</Empty>
    );
  if (chosen.kind === "link") return <LinkDetails name={chosen.id} />;
  if (chosen.kind === "node") return <NodeDetails name={chosen.id} />;
  return selectedFlow.value ? (
    <FlowDetails flow={selectedFlow.value} />
  ) : (
    <Missing what={`flow ${chosen.id.slice(0, 8)}`} />
  );
}
