//! Fuzz targets of the protocol core. Each takes any bytes; a panic is a finding.
//!
//! cargo-fuzz runs them by libFuzzer (fuzz_targets/), `cargo test` by a small driver without coverage (tests/fuzz.rs of
//! the crate), so that they work on every toolchain.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use mstcp_proto::frame::{self, Parsed, Parser, MAX_CONTROL_BYTES};
use mstcp_proto::handshake::{confirm_frame, Admission, ClientHandshake, ClientHello, NotAdmitted};
use mstcp_proto::hello::{self, Hello, PREFIX_BYTES};
use mstcp_proto::Control;
use mstcp_proto::Reassembly;
use mstcp_proto::{scheduler, Config, Connection, Event, Slice};
use mstcp_proto::{RecordReader, RecordWriter};

/// A target's name and function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 7] = [
    ("hello", hello),
    ("handshake", handshake),
    ("frames", frames),
    ("reassembly", reassembly),
    ("connection", connection),
    ("pair", pair),
    ("records", records),
];

/// Takes decisions from the input; zeros when it is used up.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bound
    }

    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A hello that is read is written the same, and comes back.
pub fn hello(data: &[u8]) {
    if let Some(Ok(prefix)) = data
        .get(..PREFIX_BYTES)
        .map(<&[u8; PREFIX_BYTES]>::try_from)
    {
        if let Ok(length) = hello::rest_bytes(prefix) {
            assert!(length <= hello::MAX_BODY_BYTES + hello::PROOF_BYTES);
        }
    }
    if let Ok(read) = Hello::decode_body(data) {
        assert!(data.len() <= hello::MAX_BODY_BYTES);
        assert_eq!(Hello::decode_body(&read.encode_body()).as_ref(), Ok(&read));
    }
}

/// Change what is on its way in up to three places.
fn tamper(way: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(4) {
        let at = choices.below(way.len() + 1);
        let end = (at + choices.below(64)).min(way.len());
        match choices.byte() % 4 {
            0 if at < way.len() => way[at] ^= 1 << (choices.byte() % 8),
            1 => drop(way.drain(at..end)),
            2 => way.extend_from_within(at..end),
            _ => drop(way.splice(at..at, choices.bytes(40).iter().copied())),
        }
    }
}

/// A server's answer, to which hello, and the proof it waits for; none if the connection has ended there.
struct Given {
    hello: Vec<u8>,
    answer: Vec<u8>,
    confirm: Option<[u8; 32]>,
}

/// The first message of what was sent; a farewell may follow it.
fn first_message(sent: &[u8]) -> &[u8] {
    let prefix = sent[..PREFIX_BYTES].try_into().expect("it has a prefix");
    let rest = hello::rest_bytes(prefix).expect("as it was written");
    &sent[..PREFIX_BYTES + rest]
}

/// A client and two servers with its secret, and somebody in the path who changes, repeats and swaps what they say: a stream
/// is let in, and an answer taken, only as it was meant.
pub fn handshake(data: &[u8]) {
    const SECRET: &[u8] = b"known to both";
    let mut choices = Choices(data);
    let has_records = choices.byte() % 2 > 0;
    let mut client = ClientHandshake::new(SECRET, [7; 16], 2, 1000);
    if has_records {
        client = client.with_records();
    }
    let mut servers = [(); 2].map(|()| Admission::new(SECRET, 2));
    let mut let_in: [HashSet<Vec<u8>>; 2] = Default::default();
    let (mut greetings, mut given): (Vec<ClientHello>, Vec<Given>) = Default::default();
    // Hellos, answers and refusals, as somebody in the path has them.
    let mut overheard: Vec<Vec<u8>> = Vec::new();
    let (mut nonces, mut now_ns) = (0_u8, 0);
    while !choices.is_empty() && overheard.len() < 64 {
        now_ns += 1 << choices.below(36);
        nonces = nonces.wrapping_add(1);
        let nonce = [nonces; 32];
        let side = choices.below(2);
        match choices.byte() % 8 {
            0 | 1 => {
                let early = match greetings.is_empty() {
                    true => choices.bytes(20),
                    false => &[],
                };
                if let Ok(greeting) = client.greet(nonce, 0, early) {
                    overheard.push(greeting.bytes.clone());
                    greetings.push(greeting);
                }
            }
            2 => servers[side].forget(&[7; 16]),
            3 => servers[side].remember(now_ns, &[7; 16], vec![9; 20]),
            4 => {
                servers[side] = Admission::new(SECRET, 2);
                let_in[side].clear();
            }
            5 if !greetings.is_empty() && !overheard.is_empty() => {
                let greeting = &greetings[choices.below(greetings.len())];
                let mut said = overheard[choices.below(overheard.len())].clone();
                tamper(&mut said, &mut choices);
                if let Ok(confirm) = client.on_answer(greeting, &said) {
                    let meant =
                        |given: &&Given| given.hello == greeting.bytes && given.answer == said;
                    let given = given.iter().find(meant);
                    let given = given.expect("an answer was taken that nobody gave to this hello");
                    assert!(given
                        .confirm
                        .map_or(true, |proof| confirm == confirm_frame(&proof)));
                    assert!(client.record_keys(greeting, &said).is_ok());
                }
            }
            _ if !overheard.is_empty() => {
                let mut said = overheard[choices.below(overheard.len())].clone();
                tamper(&mut said, &mut choices);
                let (answer, confirm) = match servers[side].admit(now_ns, &said, nonce, |_| Some(1))
                {
                    Ok(admitted) => {
                        assert_eq!(admitted.record_keys.is_some(), has_records);
                        assert!(
                            let_in[side].insert(said.clone()),
                            "a hello was let in twice"
                        );
                        (admitted.answer, Some(admitted.confirm))
                    }
                    Err(NotAdmitted::Ended { answer }) => (answer, None),
                    Err(NotAdmitted::Refused { answer, .. }) => {
                        overheard.push(first_message(&answer).to_vec());
                        continue;
                    }
                    Err(NotAdmitted::Malformed(_)) => continue,
                };
                let is_his = greetings.iter().any(|greeting| greeting.bytes == said);
                assert!(is_his, "a hello was taken that the client did not say");
                let answer = first_message(&answer).to_vec();
                overheard.push(answer.clone());
                given.push(Given {
                    hello: said,
                    answer,
                    confirm,
                });
            }
            _ => {}
        }
    }
}

/// Data frames, control frames, and the error that ended it.
type Whole = (Vec<(u64, Vec<u8>)>, Vec<Option<Control>>, Option<String>);

/// What a stream's bytes bring, data joined so that its cuts do not show, and whether an error ended it.
fn parse(payload: usize, pieces: &[&[u8]]) -> Whole {
    let mut parser = Parser::new(payload);
    let (mut data, mut controls): (Vec<(u64, Vec<u8>)>, _) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut at = 0;
        loop {
            match parser.next(&piece[at..]) {
                Err(error) => return (data, controls, Some(error.to_string())),
                Ok((consumed, None)) => {
                    assert_eq!(at + consumed, piece.len());
                    break;
                }
                Ok((consumed, Some(frame))) => {
                    at += consumed;
                    match frame {
                        Parsed::Control(control) => controls.push(control),
                        Parsed::Data {
                            offset,
                            payload,
                            first: true,
                            ..
                        } => data.push((offset, payload.to_vec())),
                        Parsed::Data {
                            offset, payload, ..
                        } => {
                            let (start, bytes) = data.last_mut().expect("a frame has begun");
                            assert_eq!(offset, *start + bytes.len() as u64);
                            bytes.extend_from_slice(payload);
                        }
                    }
                }
            }
        }
    }
    (data, controls, None)
}

/// However a stream's bytes are cut, they bring the same; control frames are written as they were read.
pub fn frames(data: &[u8]) {
    let mut choices = Choices(data);
    let payload = 1 + choices.below(64);
    let cut = 1 + choices.below(40);
    let whole = parse(payload, &[choices.0]);
    let cuts: Vec<&[u8]> = choices.0.chunks(cut).collect();
    assert_eq!(parse(payload, &cuts), whole);
    for control in whole.1.into_iter().flatten() {
        if matches!(&control, Control::Close { reason, .. } if reason.contains('\u{fffd}')) {
            continue; // what is no UTF-8 is replaced
        }
        let mut written = Vec::new();
        frame::encode_control(&mut written, &control);
        assert!(written.len() <= frame::HEADER_BYTES + MAX_CONTROL_BYTES);
        assert_eq!(parse(payload, &[&written]).1, [Some(control)]);
    }
}

/// Pieces in any order, overlapping and repeated, against a map of single bytes.
pub fn reassembly(data: &[u8]) {
    const SPACE: usize = 1 << 12;
    let byte_at = |offset: usize| ((offset * 31) >> 3) as u8;
    let mut choices = Choices(data);
    let mut buffer = Reassembly::default();
    let (mut has, mut delivered) = (vec![false; SPACE], 0);
    while !choices.is_empty() {
        let start = choices.below(SPACE);
        let length = 1 + choices.below(700).min(SPACE - start - 1);
        let bytes: Vec<u8> = (start..start + length).map(byte_at).collect();
        let mut out = Vec::new();
        buffer.insert(start as u64, Slice::copy_of(&bytes), &mut out);
        has[start..start + length].fill(true);
        for slice in &out {
            for byte in slice.iter() {
                assert!(has[delivered] && *byte == byte_at(delivered));
                delivered += 1;
            }
        }
        assert!(delivered == SPACE || !has[delivered]);
        assert_eq!(buffer.next_offset(), delivered as u64);
        let waiting = has[delivered..].iter().filter(|known| **known).count();
        assert_eq!(buffer.waiting_bytes(), waiting);
        assert!(buffer.pieces() <= waiting);
    }
}

/// A key of this input alone: the fuzzer sees what is compared, tags too, and would forge records of a key that other inputs have.
fn key_of(data: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (number, piece) in key.chunks_mut(8).enumerate() {
        let mut hasher = DefaultHasher::new();
        (number, data).hash(&mut hasher);
        piece.copy_from_slice(&hasher.finish().to_ne_bytes());
    }
    key
}

/// Records that are changed, cut, repeated or put in on the way: nothing comes out that was not written, there and in that order.
pub fn records(data: &[u8]) {
    let mut choices = Choices(data);
    let key = key_of(data);
    let (mut writer, mut reader) = (RecordWriter::new(key), RecordReader::new(key));
    let (mut written, mut way): (Vec<u8>, Vec<u8>) = Default::default();
    for _ in 0..choices.below(8) {
        let length = choices.below(300);
        let bytes = choices.bytes(length);
        written.extend_from_slice(bytes);
        writer.write(bytes, &mut way);
    }
    let honest = way.clone();
    tamper(&mut way, &mut choices);
    let cut = 1 + choices.below(100);
    let mut read = Vec::new();
    let is_refused = (way.chunks(cut)).any(|piece| reader.read(piece, &mut read).is_err());
    assert!(
        written.starts_with(&read),
        "something came that was not written"
    );
    if way == honest {
        assert!(!is_refused && read == written);
    } else if way.len() > honest.len() && way.starts_with(&honest) {
        assert_eq!(read, written);
    }
}

fn config(streams: usize, payload: usize) -> Config {
    Config {
        stream_count: streams,
        frame_payload_bytes: payload,
        send_queue_bytes: 1 << 20,
        reorder_buffer_bytes: 1 << 18,
    }
}

/// Send what a connection offers, into `take`; it must come to an end. Returns the streams that sent their last byte.
fn pump(
    connection: &mut Connection,
    now_ns: u64,
    mut take: impl FnMut(usize, &[u8]) -> usize,
) -> u64 {
    let mut ended = 0;
    for slot in connection.alive().iter() {
        connection.on_writable(slot).expect("the stream is there");
    }
    for _ in 0..100_000 {
        let Some((stream, _)) = connection.poll_frame(now_ns) else {
            return ended;
        };
        let mut bytes = Vec::new();
        connection.rest(stream, |piece| bytes.extend_from_slice(piece));
        let taken = take(stream, &bytes);
        let last = connection.on_sent(stream, taken).expect("as offered");
        ended |= u64::from(last) << stream;
    }
    panic!("the connection offers without end");
}

/// A peer that sends anything on any stream, while the application and the network do anything.
pub fn connection(data: &[u8]) {
    let mut choices = Choices(data);
    let streams = 1 + choices.below(3);
    let name = scheduler::NAMES[choices.below(scheduler::NAMES.len())];
    let scheduler = scheduler::by_name(name, 7).expect("a name of the list");
    let payload = 1 + choices.below(200);
    let mut connection = Connection::new(config(streams, payload), scheduler).expect("in range");
    let (mut now_ns, mut next_id) = (0, streams as u32);
    while !choices.is_empty() {
        now_ns += 1 << choices.below(31);
        let slot = choices.below(4);
        match choices.byte() % 8 {
            0 => {
                let length = choices.below(3000);
                if connection.write(&vec![7; length]).is_err() {
                    return;
                }
            }
            1 => connection.end(),
            2 => {
                let _ = connection.on_stream_end(slot);
            }
            3 if connection.alive().iter().count() < 4 => {
                connection.add_stream(next_id, 1e6).expect("64 may be");
                next_id += 1;
            }
            4 => connection.shut(),
            5 => {
                let _ = connection.remove_stream(slot);
            }
            _ => {
                let length = choices.below(400);
                let mut out = Vec::new();
                match connection.on_received(slot, choices.bytes(length), &mut out) {
                    Err(mstcp_proto::Error::Remote(_)) => return,
                    result => drop(result),
                }
            }
        }
        pump(&mut connection, now_ns, |_, bytes| bytes.len());
        let counters = connection.counters();
        assert!(counters.reorder_bytes <= 1 << 18);
        assert!(counters.unacknowledged_bytes <= 64 << 20);
    }
}

/// Two connections whose streams are cut, held and renewed: every byte arrives, once and in order.
pub fn pair(data: &[u8]) {
    let mut choices = Choices(data);
    let name = scheduler::NAMES[choices.below(scheduler::NAMES.len())];
    let payload = 1 + choices.below(200);
    let mut ends = [0, 1].map(|seed| {
        let scheduler = scheduler::by_name(name, seed).expect("a name of the list");
        Connection::new(config(2, payload), scheduler).expect("in range")
    });
    let mut pipes: Vec<[VecDeque<u8>; 2]> = (0..2).map(|_| Default::default()).collect();
    let (mut got, mut written): ([Vec<u8>; 2], [usize; 2]) = Default::default();
    let (mut now_ns, mut next_id, mut steps) = (1, 2, 0);
    let mut ended = [0; 2];
    loop {
        let is_over = choices.is_empty();
        steps += 1;
        assert!(steps < 20_000, "the transfer does not end");
        // A stream that one end gives up is reset: the other loses it too.
        for side in 0..2 {
            while let Some(event) = ends[side].poll_event() {
                if let Event::StreamGone { slot } = event {
                    let other = &mut ends[1 - side];
                    other.on_stream_end(slot).expect("the slot is there");
                    pipes[slot] = Default::default();
                }
            }
        }
        now_ns += if is_over {
            20_000_000
        } else {
            1 << choices.below(31)
        };
        let side = choices.below(2);
        match choices.byte() % 8 {
            _ if is_over => {
                for end in &mut ends {
                    end.end();
                }
                // A client opens what was lost again; each side may have taken out what the other kept.
                if ends[0].alive().is_empty() || (steps % 64 == 0 && pipes.len() < 32) {
                    renew(&mut ends, &mut pipes, &mut next_id);
                }
            }
            0 | 1 => {
                let bytes: Vec<u8> = (0..choices.below(2000))
                    .map(|at| (((written[side] + at) * 7) >> 2) as u8)
                    .collect();
                if ends[side].write(&bytes).is_ok() {
                    written[side] += bytes.len();
                }
            }
            2 => {
                let slot = choices.below(pipes.len());
                for end in &mut ends {
                    end.on_stream_end(slot).expect("the slot is there");
                }
                pipes[slot] = Default::default();
            }
            3 if ends[0].alive().iter().count() < 4 => {
                renew(&mut ends, &mut pipes, &mut next_id);
            }
            4 => {
                let slot = choices.below(pipes.len());
                if ends[side].alive().contains(slot) {
                    let _ = ends[side].remove_stream(slot);
                }
            }
            5 => ends[side].end(),
            _ => {}
        }
        for side in 0..2 {
            ended[side] |= pump(&mut ends[side], now_ns, |stream, bytes| {
                let pipe = &mut pipes[stream][side];
                let room = bytes.len().min(1500 - pipe.len());
                pipe.extend(&bytes[..room]);
                room
            });
        }
        for side in 0..2 {
            for slot in ends[side].alive().iter() {
                let most = if is_over { 1500 } else { choices.below(1500) };
                let pipe = &mut pipes[slot][1 - side];
                let came: Vec<u8> = pipe.drain(..most.min(pipe.len())).collect();
                ends[side]
                    .on_received(slot, &came, &mut got[side])
                    .expect("the peer keeps to the protocol");
            }
        }
        for (slot, pipe) in pipes.iter().enumerate() {
            let gone = !ends[0].alive().contains(slot);
            let both =
                ((ended[0] & ended[1]) >> slot) & 1 == 1 && pipe.iter().all(VecDeque::is_empty);
            if both && !gone {
                for end in &mut ends {
                    assert!(end.on_stream_end(slot).expect("the slot is there"));
                }
            }
            if both || gone {
                ended = ended.map(|bits| bits & !(1 << slot));
            }
        }
        if is_over && ends.iter().all(|end| end.is_finished() && end.is_ended()) {
            break;
        }
    }
    for side in 0..2 {
        assert_eq!(got[side].len(), written[1 - side]);
        let mut bytes = got[side].iter().enumerate();
        assert!(bytes.all(|(at, byte)| *byte == ((at * 7) >> 2) as u8));
    }
}

fn renew(ends: &mut [Connection; 2], pipes: &mut Vec<[VecDeque<u8>; 2]>, next_id: &mut u32) {
    let slots = [0, 1].map(|side| ends[side].add_stream(*next_id, 1e6).expect("64 may be"));
    assert_eq!(slots[0], slots[1]);
    *next_id += 1;
    if slots[0] == pipes.len() {
        pipes.push(Default::default());
    }
}
