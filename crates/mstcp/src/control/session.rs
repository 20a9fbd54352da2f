//! A flow's session with a controller: requests, renewals, changes of rates; reopened when it breaks.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{interval, sleep, timeout};
use tokio_stream::Stream;
use tonic::codec::ProstCodec;
use tonic::transport::Endpoint;
use tonic::{Request, Streaming};

use super::messages::{
    AllocationMessage, ClientBody, ClientMessage, FlowRelease, LeaseRenewal, ServerBody,
    ServerMessage,
};
use super::{Allocation, ControlError, Controller, FlowState};

const METHOD: &str = "/mstcp.control.v1.FlowControl/Session";
const RENEWALS_A_LEASE: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Messages that wait to be sent.
const MAX_MESSAGES: usize = 16;
/// How long a release may take.
const RELEASE: Duration = Duration::from_secs(1);
/// Where there are other controllers: how long connecting may take, how often one is asked whether it is still there, and how
/// long that may take.
const CONNECT: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(4);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// What a replica says that does not lead.
const NOT_LEADING: &str = "does not lead";
/// How often it is looked whether the connection is there.
const LOOK: Duration = Duration::from_millis(50);

type Reply = Result<Allocation, ControlError>;

/// A request to the controller, and where its answer goes.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) body: ClientBody,
    pub(super) answer: oneshot::Sender<Reply>,
}

/// How a session ended.
enum SessionEnd {
    /// Nobody needs the flow.
    Done,
    /// The controller cannot be reached any more.
    Broken(String),
    /// No request reached the controller: another may be asked the same.
    Unsent(String),
}

/// Hold the flow until nobody needs it.
pub(super) async fn run(
    controller: Controller,
    mut requests: mpsc::Receiver<PendingRequest>,
    state: Arc<FlowState>,
) {
    let mut delay = FIRST_DELAY;
    let mut asked: Vec<PendingRequest> = Vec::new();
    for address in controller.addresses.iter().cycle() {
        // A controller that refuses at once would be given up before anything was asked of the next.
        if asked.is_empty() && state.allocation().is_none() {
            match requests.recv().await {
                Some(request) => asked.push(request),
                None => return,
            }
        }
        let mut session = Session {
            state: Arc::clone(&state),
            waiting: HashMap::new(),
            last_id: 0,
            has_heard: false,
        };
        let ended = session
            .run(&controller, address, &mut asked, &mut requests)
            .await;
        asked.extend(session.waiting.drain().map(|(_, request)| request));
        let (reason, may_ask_again) = match ended {
            SessionEnd::Done => return,
            SessionEnd::Broken(reason) => (reason, false),
            SessionEnd::Unsent(reason) => (reason, controller.addresses.len() > 1),
        };
        let has_flow = state.allocation().is_some();
        let error = ControlError::Unavailable(reason);
        if may_ask_again {
            asked.retain(|request| !request.answer.is_closed());
        } else {
            for request in asked.drain(..) {
                let _ = request.answer.send(Err(error.clone()));
            }
        }
        if !has_flow && asked.is_empty() {
            while let Ok(request) = requests.try_recv() {
                let _ = request.answer.send(Err(error.clone()));
            }
            return;
        }
        if session.has_heard {
            delay = FIRST_DELAY;
        }
        sleep(delay).await;
        delay = (2 * delay).min(MAX_DELAY);
    }
}

struct Session {
    state: Arc<FlowState>,
    waiting: HashMap<u64, PendingRequest>,
    last_id: u64,
    has_heard: bool,
}

/// What is sent, as gRPC wants it.
struct Outgoing(mpsc::Receiver<ClientMessage>);

impl Stream for Outgoing {
    type Item = ClientMessage;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ClientMessage>> {
        self.0.poll_recv(context)
    }
}

impl Session {
    async fn run(
        &mut self,
        controller: &Controller,
        address: &str,
        asked: &mut Vec<PendingRequest>,
        requests: &mut mpsc::Receiver<PendingRequest>,
    ) -> SessionEnd {
        let (sender, outgoing) = mpsc::channel(MAX_MESSAGES);
        // A server says nothing, not even that it is there, before its first message.
        let mut opening = pin!(open(controller, address, outgoing));
        let mut incoming = None;
        let mut look = interval(LOOK);
        let mut renewed = tokio::time::Instant::now();
        self.renew(&sender).await;
        for request in asked.drain(..) {
            self.ask(&sender, request).await;
        }
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.ask(&sender, request).await,
                    None => return self.release(&sender, &mut incoming).await,
                },
                opened = &mut opening, if incoming.is_none() => match opened {
                    Ok(opened) => incoming = Some(opened),
                    Err(ended) => return ended,
                },
                message = next(&mut incoming) => match message {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => return SessionEnd::Broken("the controller ended the session".to_owned()),
                    Err(status) => return self.broken(status.message()),
                },
                _ = look.tick() => {
                    if self.state.is_over() {
                        return self.release(&sender, &mut incoming).await;
                    }
                    let lease = self.state.allocation().map(|allocation| allocation.lease);
                    if lease.is_some_and(|lease| renewed.elapsed() >= lease / RENEWALS_A_LEASE) {
                        renewed = tokio::time::Instant::now();
                        self.renew(&sender).await;
                    }
                }
            }
        }
    }

    fn broken(&self, reason: &str) -> SessionEnd {
        if !self.has_heard && reason.contains(NOT_LEADING) {
            SessionEnd::Unsent(reason.to_owned())
        } else {
            SessionEnd::Broken(reason.to_owned())
        }
    }

    async fn ask(&mut self, sender: &mpsc::Sender<ClientMessage>, request: PendingRequest) {
        self.last_id += 1;
        let message = ClientMessage {
            request_id: self.last_id,
            body: Some(request.body.clone()),
        };
        self.waiting.insert(self.last_id, request);
        // If the session breaks, who asks is told.
        let _ = sender.send(message).await;
    }

    async fn renew(&self, sender: &mpsc::Sender<ClientMessage>) {
        if let Some(allocation) = self.state.allocation() {
            let renewal = LeaseRenewal {
                flow_ids: vec![allocation.flow_id],
            };
            let body = Some(ClientBody::Renewal(renewal));
            let message = ClientMessage {
                request_id: 0,
                body,
            };
            let _ = sender.send(message).await;
        }
    }

    /// Give the flow back; the lease runs out where that cannot be said.
    async fn release(
        &mut self,
        sender: &mpsc::Sender<ClientMessage>,
        incoming: &mut Option<Streaming<ServerMessage>>,
    ) -> SessionEnd {
        if let Some(Allocation { flow_id, .. }) = self.state.allocation() {
            let body = Some(ClientBody::Release(FlowRelease { flow_id }));
            let request_id = self.last_id + 1;
            let _ = sender.send(ClientMessage { request_id, body }).await;
            let released = async {
                while let Ok(Some(message)) = next(incoming).await {
                    if message.request_id == request_id {
                        break;
                    }
                }
            };
            let _ = timeout(RELEASE, released).await;
        }
        SessionEnd::Done
    }

    fn take(&mut self, message: ServerMessage) {
        self.has_heard = true;
        let request = self.waiting.remove(&message.request_id);
        let answer = request.map(|request| request.answer);
        match message.body {
            Some(ServerBody::Allocation(allocation)) => {
                let allocation = self.granted(allocation);
                if let Some(answer) = answer {
                    let _ = answer.send(Ok(allocation));
                }
            }
            Some(ServerBody::Changed(changed)) => {
                if let Some(allocation) = changed.allocation {
                    self.granted(allocation);
                }
            }
            Some(ServerBody::Ended(ended)) => self.state.end(ended.reason),
            Some(ServerBody::Error(error)) => {
                if let Some(answer) = answer {
                    let _ = answer.send(Err(ControlError::Refused {
                        code: error.code,
                        field: error.field,
                        reason: error.reason,
                    }));
                }
            }
            Some(ServerBody::Released(_)) | None => {}
        }
    }

    fn granted(&self, message: AllocationMessage) -> Allocation {
        let allocation = Allocation::from(message);
        self.state.change(allocation.clone());
        allocation
    }
}

/// The next message of a session, once it is open.
async fn next(
    incoming: &mut Option<Streaming<ServerMessage>>,
) -> Result<Option<ServerMessage>, tonic::Status> {
    match incoming {
        Some(incoming) => incoming.message().await,
        None => std::future::pending().await,
    }
}

async fn open(
    controller: &Controller,
    address: &str,
    outgoing: mpsc::Receiver<ClientMessage>,
) -> Result<Streaming<ServerMessage>, SessionEnd> {
    let unreachable = |error: &dyn std::error::Error| {
        let cause = error
            .source()
            .map_or(String::new(), |cause| format!(": {cause}"));
        SessionEnd::Unsent(format!(
            "cannot reach the controller at {address}: {error}{cause}"
        ))
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let endpoint = endpoint.map_err(|error| unreachable(&error))?;
    let endpoint = if controller.addresses.len() == 1 {
        endpoint.connect_timeout(controller.timeout)
    } else {
        (endpoint.connect_timeout(CONNECT.min(controller.timeout)))
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
    };
    let channel = endpoint
        .connect()
        .await
        .map_err(|error| unreachable(&error))?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| unreachable(&error))?;
    let mut request = Request::new(Outgoing(outgoing));
    if let Some(token) = &controller.token {
        let bearer = format!("Bearer {token}").parse();
        let bearer = bearer
            .map_err(|_| SessionEnd::Broken("a token has printable characters alone".to_owned()))?;
        request.metadata_mut().insert("authorization", bearer);
    }
    let codec = ProstCodec::<ClientMessage, ServerMessage>::default();
    let path = METHOD
        .parse()
        .map_err(|_| SessionEnd::Broken("the method has no path".to_owned()))?;
    let opened = client.streaming(request, path, codec).await;
    let opened = opened.map_err(|status| match status.message() {
        reason if reason.contains(NOT_LEADING) => SessionEnd::Unsent(reason.to_owned()),
        reason => SessionEnd::Broken(format!("{address} refuses this client: {reason}")),
    })?;
    Ok(opened.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_that_comes_late_is_asked_of_all_controllers() {
        let controller = Controller::new("127.0.0.1:1,127.0.0.1:1");
        let (requests, waiting) = mpsc::channel(MAX_MESSAGES);
        let session = tokio::spawn(run(controller, waiting, Arc::default()));
        sleep(Duration::from_millis(300)).await;
        let body = ClientBody::Release(FlowRelease {
            flow_id: String::new(),
        });
        let (answer, answered) = oneshot::channel();
        let request = PendingRequest { body, answer };
        requests
            .send(request)
            .await
            .expect("the session waits for it");
        let asked = timeout(Duration::from_millis(300), answered).await;
        assert!(asked.is_err(), "both are asked in turn: {asked:?}");
        drop(requests);
        session.abort();
    }
}
