//! The messages of `mstcp/proto/control.proto` (mstcp.control.v1) that a client of one flow sends and reads. Fields have the names and
//! numbers of that file; those that are not here are skipped, as protobuf does.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ClientMessage {
    #[prost(uint64, tag = "1")]
    pub request_id: u64,
    #[prost(oneof = "ClientBody", tags = "2, 3, 4, 5")]
    pub body: Option<ClientBody>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ClientBody {
    #[prost(message, tag = "2")]
    Request(FlowRequest),
    #[prost(message, tag = "3")]
    Change(FlowChange),
    #[prost(message, tag = "4")]
    Release(FlowRelease),
    #[prost(message, tag = "5")]
    Renewal(LeaseRenewal),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ServerMessage {
    #[prost(uint64, tag = "1")]
    pub request_id: u64,
    #[prost(oneof = "ServerBody", tags = "2, 3, 4, 5, 6")]
    pub body: Option<ServerBody>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ServerBody {
    #[prost(message, tag = "2")]
    Allocation(AllocationMessage),
    #[prost(message, tag = "3")]
    Released(Released),
    #[prost(message, tag = "4")]
    Error(ErrorMessage),
    #[prost(message, tag = "5")]
    Changed(AllocationChanged),
    #[prost(message, tag = "6")]
    Ended(FlowEnded),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FlowRequest {
    #[prost(string, tag = "1")]
    pub source: String,
    #[prost(string, tag = "2")]
    pub destination: String,
    #[prost(uint32, tag = "3")]
    pub destination_port: u32,
    #[prost(uint32, repeated, tag = "4")]
    pub source_ports: Vec<u32>,
    #[prost(double, tag = "5")]
    pub rate_bps: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FlowChange {
    #[prost(string, tag = "1")]
    pub flow_id: String,
    #[prost(double, tag = "2")]
    pub rate_bps: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FlowRelease {
    #[prost(string, tag = "1")]
    pub flow_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LeaseRenewal {
    #[prost(string, repeated, tag = "1")]
    pub flow_ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StreamMessage {
    #[prost(uint32, tag = "1")]
    pub source_port: u32,
    #[prost(double, tag = "2")]
    pub rate_bps: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AllocationMessage {
    #[prost(string, tag = "1")]
    pub flow_id: String,
    #[prost(double, tag = "3")]
    pub rate_bps: f64,
    #[prost(message, repeated, tag = "4")]
    pub streams: Vec<StreamMessage>,
    #[prost(double, tag = "5")]
    pub lease_s: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Released {
    #[prost(string, tag = "1")]
    pub flow_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AllocationChanged {
    #[prost(message, optional, tag = "1")]
    pub allocation: Option<AllocationMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FlowEnded {
    #[prost(string, tag = "1")]
    pub flow_id: String,
    #[prost(string, tag = "2")]
    pub reason: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ErrorMessage {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub field: String,
    #[prost(string, tag = "3")]
    pub reason: String,
}
