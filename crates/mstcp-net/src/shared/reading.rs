//! Reading the sockets on behalf of a thread that waits for bytes.

use rustix::io::Errno;
use std::convert::Infallible;

use mstcp_proto::StreamSet;

use crate::driver::Driver;
use crate::inbox::{ReadError, ReadResult, ReadTarget};
use crate::memory::OwnMemory;

/// A turn reads about so much.
const TURN_BYTES: usize = 1 << 20;
/// This many turns in a row may leave bytes in the kernel that are ahead of others.
const MAX_PASSES: u8 = 16;

/// One turn: which sockets have bytes.
pub(super) struct ReadTurn<'a> {
    driver: &'a mut Driver,
    now_ns: u64,
    readable: StreamSet,
}

impl<'a> ReadTurn<'a> {
    pub(super) fn new(driver: &'a mut Driver, now_ns: u64, readable: StreamSet) -> Self {
        Self {
            driver,
            now_ns,
            readable,
        }
    }

    /// Read all sockets that have bytes. What a thread waits for goes to it as it came.
    pub(super) fn read_all(&mut self, is_awaited: bool) {
        self.driver.endpoint().hold(!is_awaited);
        for stream in self.readable.iter() {
            let result = self.driver.endpoint().read(&mut OwnMemory, stream);
            self.note(stream, result);
        }
    }

    /// Read the next bytes straight to where they are wanted, stream by stream as they follow each other.
    ///
    /// What is ahead stays in the kernel meanwhile: it soon is next, and then needs no copy. But not for many turns, `passes`:
    /// what the peer says on such a stream must not wait.
    pub(super) fn read_for(&mut self, target: &mut ReadTarget<'_>, passes: &mut u8) {
        self.driver.endpoint().hold(false);
        while target.room() > 0 && target.filled() < TURN_BYTES {
            self.driver.endpoint().take_into(target);
            let endpoint = self.driver.endpoint();
            let next = |&slot: &usize| endpoint.next_in_place(slot, target.room()) > 0;
            if let Some(stream) = self.readable.iter().find(next) {
                match self.driver.endpoint().read_in_place(stream, target) {
                    Ok((asked, count)) => self.note_once(stream, asked, Ok(count)),
                    Err(error) => self.note(stream, Err(error.into())),
                }
                continue;
            }
            let core = self.driver.core();
            let is_ahead = |slot: usize| core.expects_payload(slot);
            let Some(stream) = self.readable.iter().find(|slot| !is_ahead(*slot)) else {
                break;
            };
            let result = self.driver.endpoint().read_once(&mut OwnMemory, stream);
            self.note_once(stream, 1, result);
        }
        *passes += 1;
        if target.filled() == 0 || *passes > MAX_PASSES {
            *passes = 0;
            self.read_all(true);
        }
    }

    /// Note how a system call went; a socket that gave less than was asked for has no more.
    fn note_once(
        &mut self,
        stream: usize,
        asked: usize,
        result: Result<ReadResult, ReadError<Infallible>>,
    ) {
        if !matches!(result, Ok(Ok(count)) if count >= asked) {
            self.readable.remove(stream);
        }
        self.note(stream, result);
    }

    fn note(&mut self, stream: usize, result: Result<ReadResult, ReadError<Infallible>>) {
        let result = match result {
            Ok(count) => Ok(count),
            Err(ReadError::Protocol(error)) => Err(error),
            Err(ReadError::Memory(never)) => match never {},
        };
        let has_more = matches!(result, Ok(Ok(1..) | Err(Errno::AGAIN | Errno::INTR)));
        self.driver.note_read(self.now_ns, stream, result);
        if !has_more {
            self.readable.remove(stream);
        }
    }
}
