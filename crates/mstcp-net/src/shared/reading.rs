//! Reading the sockets on behalf of a thread that waits for bytes.

use rustix::io::Errno;
use std::convert::Infallible;

use mstcp_proto::StreamSet;

use super::loan::Findings;
use crate::endpoint::Endpoint;
use crate::inbox::{Count, ReadError, Target};
use crate::memory::OwnMemory;

/// A turn reads about so much.
const TURN_BYTES: usize = 1 << 20;
/// So many turns in a row may leave bytes in the kernel that are ahead of others.
const MOST_PASSES: u8 = 16;

/// One turn: which sockets have bytes, and what is come upon.
pub(super) struct Reading<'a> {
    endpoint: &'a mut Endpoint,
    findings: &'a mut Findings,
    readable: StreamSet,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        endpoint: &'a mut Endpoint,
        findings: &'a mut Findings,
        readable: StreamSet,
    ) -> Self {
        Self {
            endpoint,
            findings,
            readable,
        }
    }

    /// Read all sockets that have bytes. What a thread waits for goes to it as it came.
    pub(super) fn read_all(&mut self, is_awaited: bool) {
        self.endpoint.hold(!is_awaited);
        for stream in self.readable.iter() {
            let result = self.endpoint.read(&mut OwnMemory, stream);
            self.note(stream, result);
        }
    }

    /// Read the next bytes straight to where they are wanted, stream by stream as they follow each other.
    ///
    /// What is ahead stays in the kernel meanwhile: it soon is next, and then needs no copy. But not for many turns, `passes`:
    /// what the peer says on such a stream must not wait.
    pub(super) fn read_for(&mut self, target: &mut Target<'_>, passes: &mut u8) {
        self.endpoint.hold(false);
        while target.room() > 0 && target.filled() < TURN_BYTES {
            self.endpoint.take_into(target);
            let next = |&slot: &usize| self.endpoint.next_in_place(slot, target.room()) > 0;
            if let Some(stream) = self.readable.iter().find(next) {
                match self.endpoint.read_in_place(stream, target) {
                    Ok((asked, count)) => self.note_once(stream, asked, Ok(count)),
                    Err(error) => self.note(stream, Err(error.into())),
                }
                continue;
            }
            let is_ahead = |slot: usize| self.endpoint.core.expects_payload(slot);
            let Some(stream) = self.readable.iter().find(|slot| !is_ahead(*slot)) else {
                break;
            };
            let result = self.endpoint.read_once(&mut OwnMemory, stream);
            self.note_once(stream, 1, result);
        }
        *passes += 1;
        if target.filled() == 0 || *passes > MOST_PASSES {
            *passes = 0;
            self.read_all(true);
        }
    }

    /// Note how a system call went; a socket that gave less than was asked for has no more.
    fn note_once(
        &mut self,
        stream: usize,
        asked: usize,
        result: Result<Count, ReadError<Infallible>>,
    ) {
        if !matches!(result, Ok(Ok(count)) if count >= asked) {
            self.readable.remove(stream);
        }
        self.note(stream, result);
    }

    fn note(&mut self, stream: usize, result: Result<Count, ReadError<Infallible>>) {
        match result {
            Ok(Ok(0)) => self.findings.ended.insert(stream),
            Ok(Ok(_) | Err(Errno::AGAIN | Errno::INTR)) => return,
            Ok(Err(errno)) => self.findings.broken.push((stream, errno)),
            Err(ReadError::Memory(never)) => match never {},
            Err(ReadError::Protocol(error)) => self.findings.refused = Some(error),
        }
        self.readable.remove(stream);
    }
}
