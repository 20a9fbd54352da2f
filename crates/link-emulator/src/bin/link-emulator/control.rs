//! What the client asks for, done: wires by name, and the answers.

use std::collections::BTreeMap;
use std::io;

use link_emulator::request::{self, Add, Remove, Request, RequestError, Set};
use link_emulator::shape::ShapeChange;
use netsim::metrics::Histogram;
use serde_json::{json, Value};

use crate::interface::{Interface, Interfaces, State};
use crate::port::Port;
use crate::relay::{DirectionReport, RelayHandle, DIRECTION_NAMES};
use crate::sys;

/// The keys under which a request names the two interfaces of a wire.
const SIDES: [&str; 2] = ["a", "b"];

/// The wires, and the relay that runs them.
pub struct Control {
    relay: RelayHandle,
    interfaces: Interfaces,
    wires: BTreeMap<String, Wire>,
    next_number: usize,
    is_memory_locked: bool,
}

struct Wire {
    number: usize,
    ends: [Interface; 2],
    is_wireless: bool,
}

/// The response to a request, and whether the process ends with it.
pub struct Response {
    pub body: Value,
    pub is_last: bool,
}

impl Control {
    pub fn new(relay: RelayHandle, is_memory_locked: bool) -> io::Result<Self> {
        let interfaces = Interfaces::new()?;
        Ok(Self {
            relay,
            interfaces,
            wires: BTreeMap::new(),
            next_number: 0,
            is_memory_locked,
        })
    }

    /// Carries out one line.
    pub fn answer(&mut self, line: &str) -> Response {
        let request = request::parse(line);
        let is_last = request == Ok(Request::Stop);
        let body = request
            .and_then(|request| self.execute(request))
            .unwrap_or_else(
                |error| json!({ "ok": false, "error": error.sentence, "field": error.field }),
            );
        Response { body, is_last }
    }

    fn execute(&mut self, request: Request) -> Result<Value, RequestError> {
        match request {
            Request::Add(add) => self.add(add),
            Request::Set(Set {
                wire,
                a_to_b,
                b_to_a,
                up,
            }) => {
                let &Wire {
                    number,
                    is_wireless,
                    ..
                } = self.wire(&wire)?;
                let is_changed = [&a_to_b, &b_to_a]
                    .iter()
                    .any(|&shape| *shape != ShapeChange::default());
                if is_wireless && is_changed {
                    let sentence =
                        format!("{wire:?} is a wire over Wi-Fi, which can only go down and up.");
                    return Err(RequestError::of_field("wire", sentence));
                }
                self.call(move |relay| relay.set(number, &[a_to_b, b_to_a], up))?;
                Ok(json!({ "ok": true, "wire": wire }))
            }
            Request::Remove(Remove { wire }) => {
                let number = self.wire(&wire)?.number;
                self.wires.remove(&wire);
                drop(self.call(move |relay| relay.remove(number))?);
                Ok(json!({ "ok": true, "wire": wire }))
            }
            Request::Stats => self.stats(),
            Request::Stop => Ok(json!({ "ok": true })),
        }
    }

    fn add(&mut self, add: Add) -> Result<Value, RequestError> {
        let Add {
            wire: name, a, b, ..
        } = add;
        let (shapes, wifi) = ([add.a_to_b, add.b_to_a], add.wifi);
        let is_wireless = wifi.is_some();
        if self.wires.contains_key(&name) {
            let sentence = format!(
                "There is a wire {name:?} already: remove it first, or change it with set."
            );
            return Err(RequestError::of_field("wire", sentence));
        }
        let ends = [self.end(SIDES[0], &a)?, self.end(SIDES[1], &b)?];
        if ends[0].index == ends[1].index {
            let sentence = format!(
                "Both ends are {:?}: a wire joins two interfaces.",
                ends[0].name
            );
            return Err(RequestError::of_field(SIDES[1], sentence));
        }
        let ports = [
            self.open(SIDES[0], &ends[0])?,
            self.open(SIDES[1], &ends[1])?,
        ];
        let number = self.next_number;
        self.next_number += 1;
        let stream = name.clone();
        let added =
            self.call(move |relay| relay.add(number, &stream, ports, &shapes, wifi.as_deref()))?;
        if let Err(error) = added {
            drop(self.call(move |relay| relay.remove(number))?);
            return Err(RequestError::of_field(
                "wire",
                format!("The wire {name:?} cannot be: {error}."),
            ));
        }
        self.wires.insert(
            name.clone(),
            Wire {
                number,
                ends,
                is_wireless,
            },
        );
        Ok(json!({ "ok": true, "wire": name }))
    }

    /// Finds an interface that can be the end of a wire.
    fn end(&self, side: &str, name: &str) -> Result<Interface, RequestError> {
        let interface = self
            .interfaces
            .find(name)
            .map_err(|error| open_error(side, name, &error))?;
        let taken = self
            .wires
            .iter()
            .find(|(_, wire)| wire.ends.iter().any(|end| end.index == interface.index));
        match taken {
            Some((wire, _)) => {
                let sentence = format!(
                    "{name:?} is an end of the wire {wire:?} already: give another interface."
                );
                Err(RequestError::of_field(side, sentence))
            }
            None => Ok(interface),
        }
    }

    fn open(&self, side: &str, interface: &Interface) -> Result<Port, RequestError> {
        self.interfaces
            .prepare(interface)
            .and_then(|()| Port::open(interface.clone()))
            .map_err(|error| open_error(side, &interface.name, &error))
    }

    fn wire(&self, name: &str) -> Result<&Wire, RequestError> {
        self.wires.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.wires.keys().map(String::as_str).collect();
            let list = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            RequestError::of_field(
                "wire",
                format!("There is no wire {name:?}: the wires are {list}."),
            )
        })
    }

    fn stats(&self) -> Result<Value, RequestError> {
        let numbers: Vec<usize> = self.wires.values().map(|wire| wire.number).collect();
        let (time_s, reports, frame_memory_bytes) = self.call(move |relay| {
            let reports: Vec<_> = numbers
                .into_iter()
                .map(|number| relay.report(number))
                .collect();
            (
                sys::monotonic_ns() as f64 * 1e-9,
                reports,
                relay.held_bytes(),
            )
        })?;
        let mut wires = Vec::new();
        let mut directions = Vec::new();
        for ((name, wire), reports) in self.wires.iter().zip(reports) {
            let is_up = reports.iter().flatten().all(|report| report.snapshot.is_up);
            wires.push(json!({ "wire": name, "up": is_up, "error": self.wire_error(wire) }));
            for (direction, report) in DIRECTION_NAMES.iter().zip(reports) {
                directions.extend(report.map(|report| direction_json(name, direction, &report)));
            }
        }
        Ok(json!({
            "ok": true,
            "time_s": time_s,
            "cpu_s": sys::cpu_ns() as f64 * 1e-9,
            "realtime": self.relay.is_realtime,
            "memory_locked": self.is_memory_locked,
            "frame_memory_bytes": frame_memory_bytes,
            "wires": wires,
            "directions": directions,
        }))
    }

    /// Why a wire cannot carry frames now, if so.
    fn wire_error(&self, wire: &Wire) -> Option<String> {
        wire.ends
            .iter()
            .find_map(|end| match self.interfaces.state(end) {
                State::Up => None,
                State::Down => Some(format!("The interface {:?} is down: set it up.", end.name)),
                State::Gone => Some(format!(
                    "The interface {:?} is gone: remove the wire.",
                    end.name
                )),
            })
    }

    fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut crate::relay::Relay) -> R + Send + 'static,
    ) -> Result<R, RequestError> {
        self.relay.call(work).ok_or_else(|| RequestError {
            sentence: "The relay has died, and no wire works any more: start link-emulator again."
                .into(),
            field: None,
        })
    }
}

fn open_error(side: &str, name: &str, error: &io::Error) -> RequestError {
    let sentence = match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => {
            format!("There is no network interface {name:?} in this network namespace: create it first.")
        }
        Some(libc::EPERM | libc::EACCES) => {
            format!("The interface {name:?} may not be opened: run as root, or with CAP_NET_RAW and CAP_NET_ADMIN.")
        }
        _ => format!("The interface {name:?} cannot be opened: {error}."),
    };
    RequestError::of_field(side, sentence)
}

fn direction_json(wire: &str, direction: &str, report: &DirectionReport) -> Value {
    let DirectionReport {
        snapshot,
        dropped_receive,
        oversize,
    } = report;
    let counters = &snapshot.counters;
    json!({
        "wire": wire,
        "direction": direction,
        "packets": counters.packets,
        "bytes": counters.bytes,
        "dropped_queue": counters.dropped_queue,
        "dropped_loss": counters.dropped_loss,
        "dropped_receive": dropped_receive,
        "oversize": oversize,
        "dropped_down": counters.dropped_down,
        "dropped_send": counters.dropped_send,
        "queued_packets": snapshot.waiting.packets,
        "queued_bytes": snapshot.waiting.bytes,
        "in_flight_packets": snapshot.in_flight.packets,
        "in_flight_bytes": snapshot.in_flight.bytes,
        "lateness_us": lateness_json(&snapshot.lateness),
    })
}

/// Microseconds; null if nothing was released.
fn lateness_json(lateness: &Histogram) -> Value {
    let us = |ns: u64| ns as f64 * 1e-3;
    let Some(mean_ns) = lateness.mean_ns() else {
        return Value::Null;
    };
    json!({
        "mean": mean_ns * 1e-3,
        "p50": lateness.quantile_ns(0.5).map(us),
        "p99": lateness.quantile_ns(0.99).map(us),
        "max": lateness.max_ns().map(us),
    })
}
