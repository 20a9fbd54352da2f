//! Connections that a server closed with everything delivered, remembered for clients that do not know it yet.
//!
//! The last acknowledgement may be lost with the last stream. As TCP has TIME_WAIT, and QUIC its closing state (RFC 9000, section
//! 10.2.1), a server then still answers: a stream that joins is told that everything has come, and nothing is read from it.

use std::collections::{HashMap, VecDeque};

use super::Proof;

/// How long one is remembered, in nanoseconds: as long as a client waits without a stream at most.
const LIFE_NS: u64 = 30_000_000_000;
/// How many are remembered; the oldest is forgotten first. Each takes some 200 bytes.
const MOST: usize = 1 << 14;

type ConnectionId = [u8; 16];

/// What is left of a connection.
#[derive(Debug)]
pub(super) struct EndedConnection {
    pub(super) key: Proof,
    /// The frames that say that everything has come, and that nothing follows.
    pub(super) farewell: Vec<u8>,
}

/// Those that are remembered.
#[derive(Debug, Default)]
pub(super) struct EndedConnections {
    by_id: HashMap<ConnectionId, EndedConnection>,
    /// Until when, by rising time. A connection's id is used once.
    order: VecDeque<(u64, ConnectionId)>,
}

impl EndedConnections {
    /// Remember a connection from now on.
    pub(super) fn insert(&mut self, now_ns: u64, id: ConnectionId, connection: EndedConnection) {
        self.forget_old(now_ns);
        if self.order.len() == MOST {
            self.forget_first();
        }
        self.order.push_back((now_ns + LIFE_NS, id));
        self.by_id.insert(id, connection);
    }

    /// A connection that is remembered.
    pub(super) fn get(&mut self, now_ns: u64, id: &ConnectionId) -> Option<&EndedConnection> {
        self.forget_old(now_ns);
        self.by_id.get(id)
    }

    fn forget_old(&mut self, now_ns: u64) {
        while (self.order.front()).is_some_and(|(until_ns, _)| *until_ns <= now_ns) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EndedConnection, EndedConnections, LIFE_NS, MOST};

    fn id(number: usize) -> [u8; 16] {
        (number as u128).to_be_bytes()
    }

    fn connection() -> EndedConnection {
        EndedConnection {
            key: [0; 32],
            farewell: Vec::new(),
        }
    }

    #[test]
    fn connections_are_remembered_for_a_time_and_only_so_many() {
        let mut ended = EndedConnections::default();
        for number in 0..MOST {
            ended.insert(number as u64, id(number), connection());
        }
        assert!(ended.get(MOST as u64, &id(0)).is_some());
        ended.insert(MOST as u64, id(MOST), connection());
        assert!(ended.get(MOST as u64, &id(0)).is_none());
        assert!(ended.get(LIFE_NS, &id(1)).is_some());
        assert!(ended.get(LIFE_NS + 1, &id(1)).is_none());
        assert!(ended.get(LIFE_NS + 1, &id(MOST)).is_some());
        assert!(ended.get(2 * LIFE_NS, &id(MOST)).is_none());
        assert!(ended.by_id.is_empty() && ended.order.is_empty());
    }
}
