/** What is selected: a flow with its paths, a link with its flows, a switch or a host. */
import type { ComponentChildren } from "preact";
import { Chart } from "../shared/chart.tsx";
import { bitrate, duration, percent, plural, remaining } from "../shared/format.ts";
import { Badge, Empty } from "../shared/notices.tsx";
import { levelOf } from "../shared/utilisation.ts";
import { dialog, done, renewFlow, sentence } from "./actions.ts";
import { isShort } from "./flows.tsx";
import { measuredGoodput, measuredOf } from "./history.ts";
import type { LiveFlowView } from "./rest.ts";
import {
  type DirectionNow,
  directionsOf,
  flowHistory,
  flows,
  live,
  mapNodes,
  selectedFlow,
  selection,
  topology,
} from "./store.ts";
import { suppose } from "./whatif.tsx";

/** Whether a flow's paths lead over a link, in either direction. */
function usesLink(flow: LiveFlowView, link: string): boolean {
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
      <button
        class="icon"
        aria-label="Close the details"
        title="Close (Esc)"
        onClick={() => {
          selection.value = null;
        }}
      >
        ×
      </button>
    </header>
  );
}

function FlowDetails({ flow }: { flow: LiveFlowView }) {
  const samples = flowHistory.of(flow.flow_id).filter((sample) => sample.granted.length === flow.streams.length);
  const measured = measuredOf(flow);
  const times = samples.map((sample) => sample.time_s);
  const lines = flow.streams.flatMap((_, index) => {
    const granted = {
      label: `path ${index + 1}${measured === null ? "" : " granted"}`,
      colour: index,
      values: samples.map((sample) => sample.granted[index] ?? null),
    };
    return measured === null
      ? [granted]
      : [
          { ...granted, dashed: true },
          {
            label: `path ${index + 1} measured`,
            colour: index,
            values: samples.map((sample) => sample.measured[index] ?? null),
          },
        ];
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
        <dl class="facts">
          <dt>Asked</dt>
          <dd>{bitrate(flow.requested_bps)}</dd>
          <dt>Granted</dt>
          <dd class={isShort(flow) ? "short" : ""}>{bitrate(flow.rate_bps)}</dd>
          <dt>Measured</dt>
          <dd>{measured === null ? <span class="quiet">not counted</span> : bitrate(measured)}</dd>
          <dt>Lease</dt>
          <dd>
            {remaining(flow.expires_in_s)} left of {duration(flow.lease_s)}
          </dd>
          <dt>Destination port</dt>
          <dd>{flow.destination_port}</dd>
          <dt>Objective</dt>
          <dd>{flow.objective ?? "paths by hand"}</dd>
          {flow.owner ? (
            <>
              <dt>Owner</dt>
              <dd>{flow.owner}</dd>
            </>
          ) : null}
          <dt>Id</dt>
          <dd class="mono">{flow.flow_id}</dd>
        </dl>
        <section>
          <h3>{plural(flow.streams.length, "path")}</h3>
          <ol class="paths">
            {flow.streams.map((stream, index) => (
              <li key={`${stream.source_port} ${index}`}>
                <i class={`swatch series-${index % 6}`} aria-hidden="true" />
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
            <div class="chart-wait quiet">It is drawn from now on.</div>
          )}
        </section>
        <div class="actions left">
          <button
            onClick={() => {
              dialog.value = { kind: "change", flow };
            }}
          >
            Change rate…
          </button>
          <button onClick={renew}>Renew lease</button>
          <button
            onClick={() =>
              suppose({ scale: { flow_id: flow.flow_id, factor: 2, name: `${flow.source} → ${flow.destination}` } })
            }
          >
            What if it doubles?
          </button>
          <button
            class="danger"
            onClick={() => {
              dialog.value = { kind: "release", flow };
            }}
          >
            Release…
          </button>
        </div>
      </div>
    </>
  );
}

function FlowBadge({ flow }: { flow: LiveFlowView }) {
  if (flow.lost_links.length > 0) return <Badge tone="bad">on a lost link</Badge>;
  if (flow.state === "installing") return <Badge tone="plain">installing</Badge>;
  return isShort(flow) ? <Badge tone="warn">less than asked</Badge> : <Badge tone="good">active</Badge>;
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

function FlowList({ of, list }: { of: string; list: readonly LiveFlowView[] }) {
  return (
    <section>
      <h3>
        {plural(list.length, "flow")} {of}
      </h3>
      {list.length === 0 ? (
        <p class="quiet">None is planned over it.</p>
      ) : (
        <ul class="flow-list">
          {list.slice(0, 50).map((flow) => (
            <li key={flow.flow_id}>
              <button
                class="link"
                onClick={() => {
                  selection.value = { kind: "flow", id: flow.flow_id };
                }}
              >
                {flow.source} → {flow.destination} <span class="quiet">:{flow.destination_port}</span>
              </button>
              <span>{bitrate(flow.rate_bps)}</span>
            </li>
          ))}
          {list.length > 50 ? (
            <li class="quiet">and {list.length - 50} more; the table finds them by their ends</li>
          ) : null}
        </ul>
      )}
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
        {first.enabled ? (
          isUp ? (
            <Badge tone="good">up</Badge>
          ) : (
            <Badge tone="bad">down</Badge>
          )
        ) : (
          <Badge tone="warn">out of use</Badge>
        )}
      </Title>
      <div class="stack">
        <dl class="facts">
          <dt>Capacity</dt>
          <dd>{bitrate(first.capacity_bps)}</dd>
          <dt>Delay</dt>
          <dd>{duration(first.delay_s)}</dd>
        </dl>
        {both.map((direction) => (
          <Direction key={direction.tail} direction={direction} />
        ))}
        <p class="quiet">Rates of links are wire rates: with headers and acknowledgements.</p>
        <FlowList of="over it" list={flows.value.filter((flow) => usesLink(flow, name))} />
        <div class="actions left">
          <button onClick={() => suppose({ link: name })}>What if it fails?</button>
          <button
            class={first.enabled ? "danger" : ""}
            onClick={() => {
              dialog.value = { kind: "link", link: name, enable: !first.enabled };
            }}
          >
            {first.enabled ? "Take out of use…" : "Put into use…"}
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
  const links = (topology.value?.links ?? [])
    .filter((link) => link.ends.includes(name))
    .map((link) => link.ends.join("-"));
  return (
    <>
      <Title kind={node.kind === "switch" ? "Switch" : "Host"} name={name}>
        <Badge tone={tone}>{words[node.state]}</Badge>
      </Title>
      <div class="stack">
        {node.kind === "switch" ? (
          <dl class="facts">
            <dt>Rules it should have</dt>
            <dd>{live.value?.rules[name] ?? "–"}</dd>
          </dl>
        ) : null}
        {node.state === "away" ? (
          <p class="quiet">Its connection ended a moment ago; it is assumed to forward still.</p>
        ) : null}
        <section>
          <h3>{plural(links.length, "link")}</h3>
          <ul class="flow-list">
            {links.map((link) => {
              const both = directionsOf(link);
              const use = Math.max(0, ...both.map((direction) => direction.allocated_bps / direction.capacity_bps));
              return (
                <li key={link}>
                  <button
                    class="link"
                    onClick={() => {
                      selection.value = { kind: "link", id: link };
                    }}
                  >
                    {link}
                  </button>
                  <span>{both.every((direction) => direction.up) ? percent(use) : "down"}</span>
                </li>
              );
            })}
          </ul>
        </section>
        <FlowList
          of={node.kind === "switch" ? "through it" : "from or to it"}
          list={flows.value.filter((flow) => flow.streams.some((stream) => stream.path.includes(name)))}
        />
        {node.kind === "switch" ? (
          <div class="actions left">
            <button onClick={() => suppose({ node: name })}>What if it fails?</button>
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
