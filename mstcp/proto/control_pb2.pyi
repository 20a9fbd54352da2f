from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientMessage(_message.Message):
    __slots__ = ("request_id", "request", "change", "release", "renewal", "bundle", "streams")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    request: FlowRequest
    change: FlowChange
    release: FlowRelease
    renewal: LeaseRenewal
    bundle: ClientBundle
    streams: StreamsReport
    def __init__(self, request_id: _Optional[int] = ..., request: _Optional[_Union[FlowRequest, _Mapping]] = ..., change: _Optional[_Union[FlowChange, _Mapping]] = ..., release: _Optional[_Union[FlowRelease, _Mapping]] = ..., renewal: _Optional[_Union[LeaseRenewal, _Mapping]] = ..., bundle: _Optional[_Union[ClientBundle, _Mapping]] = ..., streams: _Optional[_Union[StreamsReport, _Mapping]] = ...) -> None: ...

class ClientBundle(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ClientMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ClientMessage, _Mapping]]] = ...) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("request_id", "allocation", "released", "error", "changed", "ended", "bundle")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    allocation: Allocation
    released: Released
    error: Error
    changed: AllocationChanged
    ended: FlowEnded
    bundle: ServerBundle
    def __init__(self, request_id: _Optional[int] = ..., allocation: _Optional[_Union[Allocation, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., changed: _Optional[_Union[AllocationChanged, _Mapping]] = ..., ended: _Optional[_Union[FlowEnded, _Mapping]] = ..., bundle: _Optional[_Union[ServerBundle, _Mapping]] = ...) -> None: ...

class ServerBundle(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ServerMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ServerMessage, _Mapping]]] = ...) -> None: ...

class FlowRequest(_message.Message):
    __slots__ = ("source", "destination", "destination_port", "source_ports", "rate_bps", "packet_bytes", "objective", "paths", "max_paths", "segment_overhead_bytes", "splitting", "ack_path", "streams", "lease_s", "may_grow", "protocol", "ip_version")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_PORT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PORTS_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    PACKET_BYTES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    MAX_PATHS_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_OVERHEAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    SPLITTING_FIELD_NUMBER: _ClassVar[int]
    ACK_PATH_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    MAY_GROW_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    IP_VERSION_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    destination_port: int
    source_ports: _containers.RepeatedScalarFieldContainer[int]
    rate_bps: float
    packet_bytes: int
    objective: str
    paths: _containers.RepeatedCompositeFieldContainer[RequestedPath]
    max_paths: int
    segment_overhead_bytes: int
    splitting: str
    ack_path: str
    streams: int
    lease_s: float
    may_grow: bool
    protocol: str
    ip_version: int
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., destination_port: _Optional[int] = ..., source_ports: _Optional[_Iterable[int]] = ..., rate_bps: _Optional[float] = ..., packet_bytes: _Optional[int] = ..., objective: _Optional[str] = ..., paths: _Optional[_Iterable[_Union[RequestedPath, _Mapping]]] = ..., max_paths: _Optional[int] = ..., segment_overhead_bytes: _Optional[int] = ..., splitting: _Optional[str] = ..., ack_path: _Optional[str] = ..., streams: _Optional[int] = ..., lease_s: _Optional[float] = ..., may_grow: _Optional[bool] = ..., protocol: _Optional[str] = ..., ip_version: _Optional[int] = ...) -> None: ...

class StreamsReport(_message.Message):
    __slots__ = ("flow_id", "open_ports", "failed_ports", "spare_ports")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_PORTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_PORTS_FIELD_NUMBER: _ClassVar[int]
    SPARE_PORTS_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    open_ports: _containers.RepeatedScalarFieldContainer[int]
    failed_ports: _containers.RepeatedScalarFieldContainer[int]
    spare_ports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flow_id: _Optional[str] = ..., open_ports: _Optional[_Iterable[int]] = ..., failed_ports: _Optional[_Iterable[int]] = ..., spare_ports: _Optional[_Iterable[int]] = ...) -> None: ...

class RequestedPath(_message.Message):
    __slots__ = ("nodes", "rate_bps")
    NODES_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    rate_bps: float
    def __init__(self, nodes: _Optional[_Iterable[str]] = ..., rate_bps: _Optional[float] = ...) -> None: ...

class FlowChange(_message.Message):
    __slots__ = ("flow_id", "rate_bps", "if_revisions")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    IF_REVISIONS_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    rate_bps: float
    if_revisions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flow_id: _Optional[str] = ..., rate_bps: _Optional[float] = ..., if_revisions: _Optional[_Iterable[int]] = ...) -> None: ...

class FlowRelease(_message.Message):
    __slots__ = ("flow_id", "if_revisions")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    IF_REVISIONS_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    if_revisions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flow_id: _Optional[str] = ..., if_revisions: _Optional[_Iterable[int]] = ...) -> None: ...

class LeaseRenewal(_message.Message):
    __slots__ = ("flow_ids",)
    FLOW_IDS_FIELD_NUMBER: _ClassVar[int]
    flow_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, flow_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Stream(_message.Message):
    __slots__ = ("source_port", "rate_bps", "delay_s", "path", "wire_bps", "measured_bps", "is_opening")
    SOURCE_PORT_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    DELAY_S_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    WIRE_BPS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_BPS_FIELD_NUMBER: _ClassVar[int]
    IS_OPENING_FIELD_NUMBER: _ClassVar[int]
    source_port: int
    rate_bps: float
    delay_s: float
    path: _containers.RepeatedScalarFieldContainer[str]
    wire_bps: float
    measured_bps: float
    is_opening: bool
    def __init__(self, source_port: _Optional[int] = ..., rate_bps: _Optional[float] = ..., delay_s: _Optional[float] = ..., path: _Optional[_Iterable[str]] = ..., wire_bps: _Optional[float] = ..., measured_bps: _Optional[float] = ..., is_opening: _Optional[bool] = ...) -> None: ...

class Allocation(_message.Message):
    __slots__ = ("flow_id", "requested_bps", "rate_bps", "streams", "lease_s", "split", "revision")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BPS_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    requested_bps: float
    rate_bps: float
    streams: _containers.RepeatedCompositeFieldContainer[Stream]
    lease_s: float
    split: Split
    revision: int
    def __init__(self, flow_id: _Optional[str] = ..., requested_bps: _Optional[float] = ..., rate_bps: _Optional[float] = ..., streams: _Optional[_Iterable[_Union[Stream, _Mapping]]] = ..., lease_s: _Optional[float] = ..., split: _Optional[_Union[Split, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class Split(_message.Message):
    __slots__ = ("ingress", "shares", "stamps", "acks")
    INGRESS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    ingress: Ingress
    shares: _containers.RepeatedScalarFieldContainer[float]
    stamps: _containers.RepeatedScalarFieldContainer[str]
    acks: str
    def __init__(self, ingress: _Optional[_Union[Ingress, _Mapping]] = ..., shares: _Optional[_Iterable[float]] = ..., stamps: _Optional[_Iterable[str]] = ..., acks: _Optional[str] = ...) -> None: ...

class Ingress(_message.Message):
    __slots__ = ("switch", "port")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    switch: str
    port: int
    def __init__(self, switch: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("flow_id",)
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    def __init__(self, flow_id: _Optional[str] = ...) -> None: ...

class AllocationChanged(_message.Message):
    __slots__ = ("allocation",)
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    allocation: Allocation
    def __init__(self, allocation: _Optional[_Union[Allocation, _Mapping]] = ...) -> None: ...

class FlowEnded(_message.Message):
    __slots__ = ("flow_id", "reason")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    reason: str
    def __init__(self, flow_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "field", "reason")
    class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CODE_UNSPECIFIED: _ClassVar[Error.Code]
        INVALID: _ClassVar[Error.Code]
        NOT_FOUND: _ClassVar[Error.Code]
        CONFLICT: _ClassVar[Error.Code]
        INFEASIBLE: _ClassVar[Error.Code]
        UNAVAILABLE: _ClassVar[Error.Code]
        UNAUTHENTICATED: _ClassVar[Error.Code]
        FORBIDDEN: _ClassVar[Error.Code]
        PRECONDITION_FAILED: _ClassVar[Error.Code]
        DEADLINE_EXCEEDED: _ClassVar[Error.Code]
    CODE_UNSPECIFIED: Error.Code
    INVALID: Error.Code
    NOT_FOUND: Error.Code
    CONFLICT: Error.Code
    INFEASIBLE: Error.Code
    UNAVAILABLE: Error.Code
    UNAUTHENTICATED: Error.Code
    FORBIDDEN: Error.Code
    PRECONDITION_FAILED: Error.Code
    DEADLINE_EXCEEDED: Error.Code
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    code: Error.Code
    field: str
    reason: str
    def __init__(self, code: _Optional[_Union[Error.Code, str]] = ..., field: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Renewed(_message.Message):
    __slots__ = ("flow_ids", "unknown", "forbidden")
    FLOW_IDS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    FORBIDDEN_FIELD_NUMBER: _ClassVar[int]
    flow_ids: _containers.RepeatedScalarFieldContainer[str]
    unknown: _containers.RepeatedScalarFieldContainer[str]
    forbidden: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, flow_ids: _Optional[_Iterable[str]] = ..., unknown: _Optional[_Iterable[str]] = ..., forbidden: _Optional[_Iterable[str]] = ...) -> None: ...

class ListFlowsRequest(_message.Message):
    __slots__ = ("limit", "after", "source", "destination", "owner", "through")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    THROUGH_FIELD_NUMBER: _ClassVar[int]
    limit: int
    after: int
    source: str
    destination: str
    owner: str
    through: str
    def __init__(self, limit: _Optional[int] = ..., after: _Optional[int] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., owner: _Optional[str] = ..., through: _Optional[str] = ...) -> None: ...

class ListFlowsResponse(_message.Message):
    __slots__ = ("flows", "total", "next_after")
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    NEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    flows: _containers.RepeatedCompositeFieldContainer[Flow]
    total: int
    next_after: int
    def __init__(self, flows: _Optional[_Iterable[_Union[Flow, _Mapping]]] = ..., total: _Optional[int] = ..., next_after: _Optional[int] = ...) -> None: ...

class Flow(_message.Message):
    __slots__ = ("allocation", "state", "owner", "source", "destination", "destination_port", "objective", "splitting", "expires_in_s", "lost_links", "may_grow", "protocol")
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_PORT_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    SPLITTING_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_S_FIELD_NUMBER: _ClassVar[int]
    LOST_LINKS_FIELD_NUMBER: _ClassVar[int]
    MAY_GROW_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    allocation: Allocation
    state: str
    owner: str
    source: str
    destination: str
    destination_port: int
    objective: str
    splitting: str
    expires_in_s: float
    lost_links: _containers.RepeatedScalarFieldContainer[str]
    may_grow: bool
    protocol: str
    def __init__(self, allocation: _Optional[_Union[Allocation, _Mapping]] = ..., state: _Optional[str] = ..., owner: _Optional[str] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., destination_port: _Optional[int] = ..., objective: _Optional[str] = ..., splitting: _Optional[str] = ..., expires_in_s: _Optional[float] = ..., lost_links: _Optional[_Iterable[str]] = ..., may_grow: _Optional[bool] = ..., protocol: _Optional[str] = ...) -> None: ...

class ListLinksRequest(_message.Message):
    __slots__ = ("link",)
    LINK_FIELD_NUMBER: _ClassVar[int]
    link: str
    def __init__(self, link: _Optional[str] = ...) -> None: ...

class ListLinksResponse(_message.Message):
    __slots__ = ("links",)
    LINKS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[Link]
    def __init__(self, links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("link", "capacity_bps", "delay_s", "up", "enabled", "allocated_bps", "free_bps", "measured_bps", "unrequested_bps")
    LINK_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BPS_FIELD_NUMBER: _ClassVar[int]
    DELAY_S_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_BPS_FIELD_NUMBER: _ClassVar[int]
    FREE_BPS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_BPS_FIELD_NUMBER: _ClassVar[int]
    UNREQUESTED_BPS_FIELD_NUMBER: _ClassVar[int]
    link: str
    capacity_bps: float
    delay_s: float
    up: bool
    enabled: bool
    allocated_bps: float
    free_bps: float
    measured_bps: float
    unrequested_bps: float
    def __init__(self, link: _Optional[str] = ..., capacity_bps: _Optional[float] = ..., delay_s: _Optional[float] = ..., up: _Optional[bool] = ..., enabled: _Optional[bool] = ..., allocated_bps: _Optional[float] = ..., free_bps: _Optional[float] = ..., measured_bps: _Optional[float] = ..., unrequested_bps: _Optional[float] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("links", "switches")
    LINKS_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedScalarFieldContainer[str]
    switches: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, links: _Optional[_Iterable[str]] = ..., switches: _Optional[_Iterable[str]] = ...) -> None: ...

class Scaling(_message.Message):
    __slots__ = ("flow_id", "factor")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    factor: float
    def __init__(self, flow_id: _Optional[str] = ..., factor: _Optional[float] = ...) -> None: ...

class PreviewRequest(_message.Message):
    __slots__ = ("fail", "scale", "add")
    FAIL_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    fail: Failure
    scale: _containers.RepeatedCompositeFieldContainer[Scaling]
    add: _containers.RepeatedCompositeFieldContainer[FlowRequest]
    def __init__(self, fail: _Optional[_Union[Failure, _Mapping]] = ..., scale: _Optional[_Iterable[_Union[Scaling, _Mapping]]] = ..., add: _Optional[_Iterable[_Union[FlowRequest, _Mapping]]] = ...) -> None: ...

class PreviewPath(_message.Message):
    __slots__ = ("path", "rate_bps", "delay_s")
    PATH_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    DELAY_S_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    rate_bps: float
    delay_s: float
    def __init__(self, path: _Optional[_Iterable[str]] = ..., rate_bps: _Optional[float] = ..., delay_s: _Optional[float] = ...) -> None: ...

class PreviewAdded(_message.Message):
    __slots__ = ("granted", "requested_bps", "rate_bps", "paths", "refusal")
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BPS_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    granted: bool
    requested_bps: float
    rate_bps: float
    paths: _containers.RepeatedCompositeFieldContainer[PreviewPath]
    refusal: Error
    def __init__(self, granted: _Optional[bool] = ..., requested_bps: _Optional[float] = ..., rate_bps: _Optional[float] = ..., paths: _Optional[_Iterable[_Union[PreviewPath, _Mapping]]] = ..., refusal: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class PreviewMoved(_message.Message):
    __slots__ = ("flow_id", "outcome", "requested_bps", "rate_before_bps", "rate_after_bps", "paths_before", "paths_after")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BPS_FIELD_NUMBER: _ClassVar[int]
    RATE_BEFORE_BPS_FIELD_NUMBER: _ClassVar[int]
    RATE_AFTER_BPS_FIELD_NUMBER: _ClassVar[int]
    PATHS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    PATHS_AFTER_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    outcome: str
    requested_bps: float
    rate_before_bps: float
    rate_after_bps: float
    paths_before: _containers.RepeatedCompositeFieldContainer[PreviewPath]
    paths_after: _containers.RepeatedCompositeFieldContainer[PreviewPath]
    def __init__(self, flow_id: _Optional[str] = ..., outcome: _Optional[str] = ..., requested_bps: _Optional[float] = ..., rate_before_bps: _Optional[float] = ..., rate_after_bps: _Optional[float] = ..., paths_before: _Optional[_Iterable[_Union[PreviewPath, _Mapping]]] = ..., paths_after: _Optional[_Iterable[_Union[PreviewPath, _Mapping]]] = ...) -> None: ...

class PreviewLink(_message.Message):
    __slots__ = ("link", "up", "capacity_bps", "allocated_before_bps", "allocated_after_bps")
    LINK_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BPS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_BEFORE_BPS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_AFTER_BPS_FIELD_NUMBER: _ClassVar[int]
    link: str
    up: bool
    capacity_bps: float
    allocated_before_bps: float
    allocated_after_bps: float
    def __init__(self, link: _Optional[str] = ..., up: _Optional[bool] = ..., capacity_bps: _Optional[float] = ..., allocated_before_bps: _Optional[float] = ..., allocated_after_bps: _Optional[float] = ...) -> None: ...

class PreviewSummary(_message.Message):
    __slots__ = ("flows", "admitted", "refused", "moved", "lost", "rate_changed", "rate_before_bps", "rate_after_bps", "max_utilisation_before", "max_utilisation_after")
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    RATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    RATE_BEFORE_BPS_FIELD_NUMBER: _ClassVar[int]
    RATE_AFTER_BPS_FIELD_NUMBER: _ClassVar[int]
    MAX_UTILISATION_BEFORE_FIELD_NUMBER: _ClassVar[int]
    MAX_UTILISATION_AFTER_FIELD_NUMBER: _ClassVar[int]
    flows: int
    admitted: int
    refused: int
    moved: int
    lost: int
    rate_changed: int
    rate_before_bps: float
    rate_after_bps: float
    max_utilisation_before: float
    max_utilisation_after: float
    def __init__(self, flows: _Optional[int] = ..., admitted: _Optional[int] = ..., refused: _Optional[int] = ..., moved: _Optional[int] = ..., lost: _Optional[int] = ..., rate_changed: _Optional[int] = ..., rate_before_bps: _Optional[float] = ..., rate_after_bps: _Optional[float] = ..., max_utilisation_before: _Optional[float] = ..., max_utilisation_after: _Optional[float] = ...) -> None: ...

class PreviewResponse(_message.Message):
    __slots__ = ("summary", "added", "flows", "links")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    summary: PreviewSummary
    added: _containers.RepeatedCompositeFieldContainer[PreviewAdded]
    flows: _containers.RepeatedCompositeFieldContainer[PreviewMoved]
    links: _containers.RepeatedCompositeFieldContainer[PreviewLink]
    def __init__(self, summary: _Optional[_Union[PreviewSummary, _Mapping]] = ..., added: _Optional[_Iterable[_Union[PreviewAdded, _Mapping]]] = ..., flows: _Optional[_Iterable[_Union[PreviewMoved, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[PreviewLink, _Mapping]]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("last_event_id", "past")
    LAST_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    last_event_id: str
    past: int
    def __init__(self, last_event_id: _Optional[str] = ..., past: _Optional[int] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("id", "kind", "time_s", "text", "data_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_S_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    time_s: float
    text: str
    data_json: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., time_s: _Optional[float] = ..., text: _Optional[str] = ..., data_json: _Optional[str] = ...) -> None: ...
