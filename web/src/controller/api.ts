/** What the controller's REST API says (see /docs); rates are bit/s, times seconds. */

export interface TopologyNode { name: string; kind: "host" | "switch"; x: number | null; y: number | null }
export interface TopologyLink { ends: [string, string]; rate_bps: number; delay_s: number; up: boolean }
export interface Topology { name: string; description: string; nodes: TopologyNode[]; links: TopologyLink[] }

/** One direction of a link. */
export interface LinkDirection { link: string; name: string; tail: string; head: string; capacity_bps: number; delay_s: number }

export interface Stream {
  source_port: number;
  rate_bps: number;
  delay_s: number;
  path: string[];
  /** Wire rate allocated and counted; counted is null while nothing is. */
  wire_bps?: number;
  measured_bps?: number | null;
}

export interface Flow {
  flow_id: string;
  owner: string | null;
  revision: number;
  state: "installing" | "active";
  source: string;
  destination: string;
  destination_port: number;
  objective: string | null;
  requested_bps: number;
  rate_bps: number;
  lease_s: number;
  expires_in_s: number;
  lost_links: string[];
  streams: Stream[];
}

export interface LiveLinks {
  up: boolean[];
  enabled: boolean[];
  capacity_bps: number[];
  allocated_bps: number[];
  measured_bps: (number | null)[];
  /** Of what is measured, what belongs to no flow. */
  unrequested_bps: (number | null)[];
}

export interface Histogram { bounds_s: number[]; counts: number[]; sum_s: number }

export interface Figures {
  solve: Histogram;
  request_to_installed: Histogram;
  events: number;
  refused_requests: number;
  waiting_requests: number;
  resident_bytes: number | null;
  cpu_s: number | null;
}

export interface Live {
  time_s: number;
  event_id: string;
  links: LiveLinks;
  nodes: ("up" | "away" | "down")[];
  flows: Flow[];
  rules: Record<string, number>;
  figures: Figures;
}

export interface ControllerEvent {
  kind: string;
  time_s: number;
  text: string;
  data: Record<string, unknown>;
}

export interface PreviewPath { path: string[]; rate_bps: number; delay_s: number }

export interface MovedFlow {
  flow_id: string;
  source: string;
  destination: string;
  outcome: "moved" | "rate_changed" | "lost";
  requested_bps: number;
  rate_before_bps: number;
  rate_after_bps: number;
  paths_before: PreviewPath[];
  paths_after: PreviewPath[];
}

export interface AddedFlow {
  source: string;
  destination: string;
  granted: boolean;
  requested_bps: number;
  rate_bps: number;
  paths: PreviewPath[];
  refusal: { code: string; field: string; reason: string } | null;
}

export interface PreviewLink {
  link: string;
  name: string;
  capacity_bps: number;
  up: boolean;
  utilisation_before: number;
  utilisation_after: number;
}

export interface Preview {
  summary: {
    flows: number;
    admitted: number;
    refused: number;
    moved: number;
    lost: number;
    rate_changed: number;
    rate_before_bps: number;
    rate_after_bps: number;
    max_utilisation_before: number;
    max_utilisation_after: number;
  };
  added: AddedFlow[];
  flows: MovedFlow[];
  links: PreviewLink[];
}

export interface PreviewQuestion {
  fail: { links: string[]; switches: string[] };
  scale: { flow_id?: string; factor: number }[];
  add: { source: string; destination: string; destination_port: number; rate_bps: number }[];
}
