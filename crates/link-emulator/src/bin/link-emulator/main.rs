//! `link-emulator`: relays Ethernet frames between pairs of network interfaces and makes links of them.
//!
//! JSON lines on standard input, one answer a line on standard output (see `docs/architecture.md`). The main thread
//! reads requests and does what takes the kernel long; the relay's thread does nothing but move frames.

mod alarm;
mod control;
mod interface;
mod port;
mod relay;
mod sys;
mod transmit;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use control::Control;
use relay::RelayHandle;

const HELP: &str = "\
Usage: link-emulator [--realtime-priority N | --virtual-time]

Relays Ethernet frames between pairs of network interfaces and makes links of them: rate, delay, queue, loss, jitter,
or Wi-Fi. Reads requests from standard input, one JSON object a line, and answers each with a line on standard output; ends with
its input, on SIGTERM, or when asked to. Needs CAP_NET_RAW and CAP_NET_ADMIN.

    {\"cmd\":\"add\",\"wire\":\"S0-S4\",\"a\":\"IFNAME\",\"b\":\"IFNAME\",\"a_to_b\":SHAPE,\"b_to_a\":SHAPE}
    {\"cmd\":\"add\",\"wire\":\"AP-STA\",\"a\":\"IFNAME\",\"b\":\"IFNAME\",\"wifi\":WIFI}
    {\"cmd\":\"set\",\"wire\":\"S0-S4\",\"a_to_b\":SHAPE,\"b_to_a\":SHAPE,\"up\":true}
    {\"cmd\":\"remove\",\"wire\":\"S0-S4\"}
    {\"cmd\":\"stats\"}
    {\"cmd\":\"stop\"}

SHAPE = {\"rate_bps\":null,\"delay_us\":0,\"queue_packets\":null,\"queue_bytes\":null,\"loss\":0,\"jitter_us\":0,\"seed\":1}
These are the defaults for add; set changes only what it names.
WIFI = {\"stations\":[\"AP\",\"STA\"],\"seed\":1,\"queue_packets\":null,\"link\":{\"standard\":\"802.11g\",\"distance_m\":20,\"phy_rate_bps\":54e6}}
and other keys of docs/simulator-wifi.md. Wires of one channel share a medium; set only takes them up and down.

Options:
  --realtime-priority N   SCHED_FIFO priority of the relay, 1 to 99; 0 for none (default 50)
  --virtual-time          sleeps end on time: wake for each frame, and never spin
  --version               print the version
  --help                  print this
";

const DEFAULT_PRIORITY: i32 = 50;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (priority, is_exact) = match arguments[..] {
        [] => (DEFAULT_PRIORITY, false),
        ["--virtual-time"] => (0, true),
        ["--help"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["--version"] => {
            println!("link-emulator {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        ["--realtime-priority", value] => match value.parse() {
            Ok(priority @ 0..=99) => (priority, false),
            _ => {
                return usage_error(&format!(
                    "--realtime-priority must be a whole number from 0 to 99, not {value:?}."
                ))
            }
        },
        _ => {
            return usage_error(&format!(
                "The arguments {arguments:?} are not understood: see --help."
            ))
        }
    };
    match serve(priority, is_exact) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("link-emulator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage_error(sentence: &str) -> ExitCode {
    eprintln!("link-emulator: {sentence}");
    ExitCode::from(2)
}

fn serve(priority: i32, is_exact: bool) -> Result<(), String> {
    let start_error = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "Packet sockets are not allowed: run as root, or with CAP_NET_RAW and CAP_NET_ADMIN."
                .to_owned()
        }
        _ => format!("The relay cannot start: {error}."),
    };
    sys::exit_on_termination().map_err(start_error)?;
    let relay = RelayHandle::start(priority, is_exact).map_err(start_error)?;
    let is_memory_locked = sys::lock_memory();
    let mut control = Control::new(relay, is_memory_locked).map_err(start_error)?;
    converse(&mut control)
        .map_err(|error| format!("The conversation with the client broke off: {error}."))
}

/// Answers line by line until the input ends or a request to stop was answered.
fn converse(control: &mut Control) -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let answer = control.answer(String::from_utf8_lossy(&line).trim());
        writeln!(output, "{}", answer.body)?;
        output.flush()?;
        if answer.is_last {
            break;
        }
        line.clear();
    }
    Ok(())
}
