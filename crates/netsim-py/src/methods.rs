//! User-defined methods in Python: objects that the simulator calls as if they were Rust's.
//!
//! An object's methods take plain objects with floats in seconds and bytes. What one raises ends the run: it is kept here, all further
//! calls do nothing, and `sim.run` raises it.

use std::sync::{Arc, Mutex, PoisonError};

use netsim::bundle::mptcp::scheduler::{Scheduler, View as CoreView};
use netsim::methods::Methods;
use netsim::tcp::congestion::{Acked as CoreAcked, CongestionControl, Window as CoreWindow};
use netsim::tcp::recovery::response::{SpuriousResponse, Undo};
use netsim::tcp::recovery::{AckEvent, Episode};
use netsim::tcp::scoreboard::{Scoreboard, Transmission};
use netsim::tcp::Segment;
use netsim::time::Nanos;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The congestion window of a connection; a congestion control changes the first two.
#[pyclass(module = "netsim_native")]
#[derive(Debug, Default)]
pub struct Window {
    #[pyo3(get, set)]
    cwnd_bytes: f64,
    #[pyo3(get, set)]
    ssthresh_bytes: f64,
    #[pyo3(get)]
    mss_bytes: u32,
    #[pyo3(get)]
    srtt_s: Option<f64>,
}

impl Window {
    /// Take the simulator's window; a part of a byte that was left here stays.
    fn take(&mut self, window: &CoreWindow) {
        if self.cwnd_bytes as u64 != window.cwnd {
            self.cwnd_bytes = window.cwnd as f64;
        }
        self.ssthresh_bytes = match window.ssthresh {
            most if most > 1 << 62 => f64::INFINITY,
            bytes => bytes as f64,
        };
        self.mss_bytes = window.mss;
    }

    /// Give the simulator what was made of it: a segment at least.
    fn give(&mut self, window: &mut CoreWindow) -> PyResult<()> {
        for (name, value) in [
            ("cwnd_bytes", self.cwnd_bytes),
            ("ssthresh_bytes", self.ssthresh_bytes),
        ] {
            check_bytes(name, value)?;
        }
        self.cwnd_bytes = self.cwnd_bytes.clamp(f64::from(self.mss_bytes), 1e15);
        window.cwnd = self.cwnd_bytes as u64;
        window.ssthresh = if self.ssthresh_bytes < 1e15 {
            self.ssthresh_bytes as u64
        } else {
            u64::MAX
        };
        Ok(())
    }
}

fn check_bytes(name: &str, value: f64) -> PyResult<()> {
    if value.is_nan() || value < 0.0 {
        let reason = format!("{name} of the window is {value}: it is a number of bytes");
        return Err(PyValueError::new_err(reason));
    }
    Ok(())
}

/// What an ACK of new data says.
#[pyclass(module = "netsim_native", frozen, get_all)]
#[derive(Debug)]
pub struct Acked {
    now_s: f64,
    bytes: u64,
    segments: u64,
    srtt_s: Option<f64>,
}

/// A subflow, as a scheduler sees it.
#[pyclass(module = "netsim_native", frozen, get_all)]
#[derive(Debug)]
pub struct Subflow {
    index: usize,
    srtt_s: f64,
    rtt_variation_s: f64,
    cwnd_bytes: u64,
    in_flight_bytes: u64,
    room_bytes: u64,
    segment_bytes: u64,
    has_room: bool,
}

/// What a scheduler chooses by.
#[pyclass(module = "netsim_native", frozen, get_all)]
#[derive(Debug)]
pub struct View {
    subflows: Py<PyList>,
    unsent_bytes: u64,
    window_room_bytes: u64,
}

/// An ACK, as a response to reordering sees it.
#[pyclass(module = "netsim_native", frozen, get_all)]
#[derive(Debug)]
pub struct Ack {
    now_s: f64,
    before: u64,
    number: u64,
    duplicate: bool,
    recovering: bool,
    flight_bytes: u64,
    srtt_s: Option<f64>,
    echo_s: Option<f64>,
    arrived_twice: Option<(u64, u64)>,
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// The first exception that a method raised.
#[derive(Debug, Clone, Default)]
pub struct FirstException(Arc<Mutex<Option<PyErr>>>);

impl FirstException {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Take the exception; none if all went well.
    pub fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }

    /// Call Python, unless something failed before; what it raises is kept.
    fn guard<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.lock().is_some() {
            return None;
        }
        match Python::attach(call) {
            Ok(value) => Some(value),
            Err(error) => {
                *self.lock() = Some(error);
                None
            }
        }
    }
}

/// Makes methods by a Python function of their kind and name.
#[derive(Debug)]
pub struct Loader<'a> {
    load: &'a Py<PyAny>,
    failure: FirstException,
}

impl<'a> Loader<'a> {
    /// `load(kind, name)` returns a new object; what methods raise is kept in `failure`.
    pub fn new(load: &'a Py<PyAny>, failure: FirstException) -> Self {
        Self { load, failure }
    }

    fn object(&self, kind: &str, name: &str, required: &[&str]) -> Result<Py<PyAny>, String> {
        Python::attach(|py| {
            let object = self
                .load
                .bind(py)
                .call1((kind, name))
                .map_err(|error| format!("{name}: {error}"))?;
            let missing = required.iter().find(|&&method| !has(&object, method));
            match missing {
                Some(method) => Err(format!(
                    "{name} has no method {method}, which a {kind} needs"
                )),
                None => Ok(object.unbind()),
            }
        })
    }
}

fn has(object: &Bound<'_, PyAny>, method: &str) -> bool {
    object
        .getattr(method)
        .is_ok_and(|attribute| attribute.is_callable())
}

impl Methods for Loader<'_> {
    fn congestion_controls(
        &self,
        name: &str,
        count: usize,
    ) -> Result<Vec<Box<dyn CongestionControl>>, String> {
        let load = |_| self.object("congestion control", name, &["on_ack", "on_loss"]);
        let objects = (0..count).map(load).collect::<Result<Vec<_>, _>>()?;
        let controls = Python::attach(|py| {
            let make = |object: &Py<PyAny>| {
                let window = Py::new(py, Window::default())?;
                object.bind(py).setattr("window", &window)?;
                object
                    .bind(py)
                    .setattr("peers", PyList::new(py, &objects)?)?;
                let control = OwnControl {
                    on_timeout: has(object.bind(py), "on_timeout"),
                    on_reduction: has(object.bind(py), "on_reduction"),
                    object: object.clone_ref(py),
                    window,
                    failure: self.failure.clone(),
                };
                PyResult::Ok(Box::new(control) as Box<dyn CongestionControl>)
            };
            objects.iter().map(make).collect::<PyResult<Vec<_>>>()
        });
        controls.map_err(|error| format!("{name}: {error}"))
    }

    fn scheduler(&self, name: &str) -> Result<Box<dyn Scheduler>, String> {
        let object = self.object("scheduler", name, &["choose"])?;
        let (redundant, on_blocked) = Python::attach(|py| {
            let redundant = object.bind(py).getattr("redundant");
            let redundant = redundant.and_then(|value| value.is_truthy());
            (
                redundant.unwrap_or(false),
                has(object.bind(py), "on_blocked"),
            )
        });
        Ok(Box::new(OwnScheduler {
            object,
            redundant,
            on_blocked,
            failure: self.failure.clone(),
        }))
    }

    fn response(&self, name: &str) -> Result<Box<dyn SpuriousResponse>, String> {
        let object = self.object("response to reordering", name, &["on_reduction", "on_ack"])?;
        let (on_resent, holds) = Python::attach(|py| {
            let object = object.bind(py);
            (has(object, "on_resent"), has(object, "holds_window"))
        });
        Ok(Box::new(OwnResponse {
            object,
            on_resent,
            holds,
            failure: self.failure.clone(),
        }))
    }
}

#[derive(Debug)]
struct OwnControl {
    object: Py<PyAny>,
    window: Py<Window>,
    on_timeout: bool,
    on_reduction: bool,
    failure: FirstException,
}

impl OwnControl {
    fn act(
        &self,
        window: &mut CoreWindow,
        call: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, Window>) -> PyResult<()>,
    ) {
        self.failure.guard(|py| {
            let shared = self.window.bind(py);
            shared.borrow_mut().take(window);
            call(self.object.bind(py), shared)?;
            let given = shared.borrow_mut().give(window);
            given
        });
    }
}

impl CongestionControl for OwnControl {
    fn on_ack(&mut self, window: &mut CoreWindow, acked: &CoreAcked) {
        let told = Acked {
            now_s: seconds(acked.now),
            bytes: acked.bytes,
            segments: acked.segments,
            srtt_s: acked.srtt.map(seconds),
        };
        self.act(window, |object, window| {
            window.borrow_mut().srtt_s = told.srtt_s;
            object.call_method1("on_ack", (window, told)).map(drop)
        });
    }

    fn on_loss(&mut self, now: Nanos, window: &mut CoreWindow, flight: u64) {
        self.act(window, |object, window| {
            object
                .call_method1("on_loss", (window, seconds(now), flight))
                .map(drop)
        });
    }

    fn on_reduction(&mut self, window: &mut CoreWindow, cwnd: u64) {
        if !self.on_reduction {
            window.cwnd = cwnd;
            return;
        }
        self.act(window, |object, window| {
            object
                .call_method1("on_reduction", (window, cwnd))
                .map(drop)
        });
    }

    fn on_timeout(&mut self, window: &mut CoreWindow) {
        if !self.on_timeout {
            window.cwnd = window.segment();
            return;
        }
        self.act(window, |object, window| {
            object.call_method1("on_timeout", (window,)).map(drop)
        });
    }
}

#[derive(Debug)]
struct OwnScheduler {
    object: Py<PyAny>,
    redundant: bool,
    on_blocked: bool,
    failure: FirstException,
}

impl Scheduler for OwnScheduler {
    fn choose(&mut self, view: &CoreView<'_>) -> Option<usize> {
        let chosen = self.failure.guard(|py| {
            let subflows = view.subflows.iter().map(|flow| Subflow {
                index: flow.index,
                srtt_s: seconds(flow.srtt),
                rtt_variation_s: seconds(flow.rtt_variation),
                cwnd_bytes: flow.cwnd,
                in_flight_bytes: flow.in_flight,
                room_bytes: flow.room,
                segment_bytes: flow.segment,
                has_room: flow.has_room(),
            });
            let subflows = subflows
                .map(|flow| Py::new(py, flow))
                .collect::<PyResult<Vec<_>>>()?;
            let told = View {
                subflows: PyList::new(py, subflows)?.unbind(),
                unsent_bytes: view.unsent,
                window_room_bytes: view.window_room,
            };
            let chosen = self.object.bind(py).call_method1("choose", (told,))?;
            let index: Option<usize> = chosen.extract().map_err(|_| {
                PyTypeError::new_err("choose() returns the index of a subflow, or None")
            })?;
            let fits = |index: usize| {
                view.subflows
                    .iter()
                    .any(|flow| flow.index == index && flow.has_room())
            };
            match index {
                Some(index) if !fits(index) => {
                    let reason =
                        format!("choose() returned {index}: no subflow of this index has room");
                    Err(PyValueError::new_err(reason))
                }
                index => Ok(index),
            }
        });
        chosen.flatten()
    }

    fn is_redundant(&self) -> bool {
        self.redundant
    }

    fn on_blocked(&mut self) {
        if self.on_blocked {
            self.failure
                .guard(|py| self.object.bind(py).call_method0("on_blocked").map(drop));
        }
    }
}

#[derive(Debug)]
struct OwnResponse {
    object: Py<PyAny>,
    on_resent: bool,
    holds: bool,
    failure: FirstException,
}

impl SpuriousResponse for OwnResponse {
    fn on_reduction(&mut self, now: Nanos, window: &CoreWindow, _: &Scoreboard, timeout: bool) {
        self.failure.guard(|py| {
            let mut told = Window::default();
            told.take(window);
            let told = Py::new(py, told)?;
            let object = self.object.bind(py);
            object
                .call_method1("on_reduction", (told, seconds(now), timeout))
                .map(drop)
        });
    }

    fn on_resent(&mut self, now: Nanos, sent: &Transmission) {
        if self.on_resent {
            let end = sent.start + u64::from(sent.payload_bytes);
            self.failure.guard(|py| {
                let object = self.object.bind(py);
                object
                    .call_method1("on_resent", (seconds(now), sent.start, end))
                    .map(drop)
            });
        }
    }

    fn holds_window(&self, now: Nanos) -> bool {
        if !self.holds {
            return false;
        }
        let held = self.failure.guard(|py| {
            let object = self.object.bind(py);
            object
                .call_method1("holds_window", (seconds(now),))?
                .is_truthy()
        });
        held.unwrap_or(false)
    }

    fn on_ack(&mut self, event: &AckEvent, segment: &Segment, episode: &Episode) -> Option<Undo> {
        let told = Ack {
            now_s: seconds(event.now),
            before: event.before,
            number: event.ack,
            duplicate: event.duplicate,
            recovering: episode.recover_ahead && event.ack < episode.recover,
            flight_bytes: event.flight,
            srtt_s: event.srtt.map(seconds),
            echo_s: segment.timestamps.map(|(_, echo)| seconds(echo)),
            arrived_twice: segment.duplicate(),
        };
        let undo = self.failure.guard(|py| {
            let answer = self.object.bind(py).call_method1("on_ack", (told,))?;
            let back: Option<(f64, f64)> = answer.extract().map_err(|_| {
                let reason = "on_ack() returns the window to go back to as (cwnd_bytes, ssthresh_bytes), or None";
                PyTypeError::new_err(reason)
            })?;
            if let Some((cwnd, ssthresh)) = back {
                check_bytes("cwnd_bytes", cwnd)?;
                check_bytes("ssthresh_bytes", ssthresh)?;
            }
            Ok(back)
        });
        let (cwnd, ssthresh) = undo.flatten()?;
        Some(Undo {
            window: CoreWindow {
                cwnd: cwnd as u64,
                ssthresh: ssthresh as u64,
                mss: 0,
            },
            resume: true,
        })
    }
}
