//! Connections hear when this host's addresses change; on Linux.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use mstcp_net::{sys, Errno};

use crate::task::{now_ns, Shared};

static CONNECTIONS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Tell a connection of changes as long as it lives; where the system says nothing, of none.
pub(crate) fn follow(connection: &Arc<Shared>) {
    static IS_WATCHED: OnceLock<bool> = OnceLock::new();
    let is_watched = IS_WATCHED.get_or_init(|| {
        let watching = sys::address_changes().and_then(|changes| {
            let thread = thread::Builder::new().name("mstcp-network".to_owned());
            thread.spawn(move || watch(changes))
        });
        watching.is_ok()
    });
    if !is_watched {
        return;
    }
    let mut connections = (CONNECTIONS.lock()).unwrap_or_else(PoisonError::into_inner);
    if connections.len() == connections.capacity() {
        connections.retain(|connection| connection.strong_count() > 0);
    }
    connections.push(Arc::downgrade(connection));
}

fn watch(changes: OwnedFd) {
    let mut changes = File::from(changes);
    let mut message = vec![0; 1 << 16];
    loop {
        match changes
            .read(&mut message)
            .map_err(|error| Errno::from_io_error(&error))
        {
            // What they are is asked for where it matters; more may have changed than the socket could hold.
            Ok(_) | Err(Some(Errno::NOBUFS | Errno::INTR)) => {}
            Err(_) => return,
        }
        let connections = (CONNECTIONS.lock()).unwrap_or_else(PoisonError::into_inner);
        let alive: Vec<_> = connections.iter().filter_map(Weak::upgrade).collect();
        drop(connections);
        for connection in alive {
            connection.with(|state| state.driver.network_changed(now_ns()));
        }
    }
}
