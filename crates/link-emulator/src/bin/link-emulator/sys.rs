//! Thin wrappers of the system calls that the standard library has no words for.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Turns a negative result into the error of the last system call.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Takes ownership of a descriptor that a system call has just returned.
pub fn own(result: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new, so nobody else owns it.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a socket option to a plain value.
pub fn set_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: T) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe {
        let pointer = std::ptr::addr_of!(value).cast();
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            pointer,
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Reads a socket option that is a plain C value.
///
/// # Safety
/// Every bit pattern must be a valid `T`.
pub unsafe fn get_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32) -> io::Result<T> {
    let mut value: T = zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let pointer = std::ptr::addr_of_mut!(value).cast();
    check(libc::getsockopt(
        socket.as_raw_fd(),
        level,
        option,
        pointer,
        &mut length,
    ))?;
    Ok(value)
}

/// A clock's time in nanoseconds.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: the pointer is to a timespec of ours; the clocks used here always exist.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(clock, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time since the boot, never set back, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Wall-clock time, in which the kernel stamps packets, in nanoseconds.
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Processor time that the process has used, in nanoseconds.
pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn timespec(ns: u64) -> libc::timespec {
    // SAFETY: all zeroes is a valid timespec (some platforms have padding, so it cannot be written as a literal).
    let mut time: libc::timespec = unsafe { zeroed() };
    time.tv_sec = (ns / 1_000_000_000) as libc::time_t;
    time.tv_nsec = (ns % 1_000_000_000) as _;
    time
}

/// Sleeps until a time of [`monotonic_ns`]; may return early on a signal.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    // SAFETY: the pointer is to a timespec of ours; no remainder is asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &deadline,
            std::ptr::null_mut(),
        );
    }
}

/// Gives the calling thread a fixed real-time priority and precise timers; false if that is not allowed.
pub fn become_realtime(priority: i32) -> bool {
    // SAFETY: plain values, and a pointer to a structure of ours.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        let mut parameters: libc::sched_param = zeroed();
        parameters.sched_priority = priority;
        priority > 0
            && libc::sched_setscheduler(
                0,
                libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
                &parameters,
            ) == 0
    }
}

/// Keeps the process's memory from being paged out; false if that is not allowed.
pub fn lock_memory() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0 }
}

/// Ends the process in peace on SIGTERM and SIGINT. Call it before any other thread is started.
pub fn exit_on_termination() -> io::Result<()> {
    // SAFETY: the set is ours; the threads started later inherit the mask.
    let signals = unsafe {
        let mut signals: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        signals
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut signal = 0;
            // SAFETY: both pointers are to variables of ours.
            unsafe { libc::sigwait(&signals, &mut signal) };
            std::process::exit(0);
        })?;
    Ok(())
}

/// A wake-up call between threads.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(Self)
    }

    /// Wakes the thread that waits for the descriptor.
    pub fn notify(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from a variable of ours.
        unsafe {
            libc::write(
                self.0.as_raw_fd(),
                std::ptr::addr_of!(one).cast(),
                size_of::<u64>(),
            )
        };
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An edge-triggered epoll instance: reports a descriptor once for each new event, by the number given to it.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// `capacity` is the most events that one [`Epoll::poll`] reports.
    pub fn new(capacity: usize) -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; capacity],
        })
    }

    /// Watches a descriptor until it is closed.
    pub fn add(&self, fd: RawFd, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: number,
        };
        // SAFETY: the pointer is to an event of ours.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })
            .map(drop)
    }

    /// The numbers of the descriptors with new events, without waiting.
    pub fn poll(&mut self) -> impl Iterator<Item = u64> + '_ {
        // SAFETY: the pointer and the length describe `self.events`.
        let count = unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                0,
            )
        };
        self.events[..count.max(0) as usize]
            .iter()
            .map(|event| event.u64)
    }

    /// Waits for an event, at most until a time of [`monotonic_ns`].
    pub fn wait_until(&self, deadline_ns: Option<u64>) {
        let timeout = deadline_ns.map(|deadline| timespec(deadline.saturating_sub(monotonic_ns())));
        let pointer = timeout
            .as_ref()
            .map_or(std::ptr::null(), |timeout| timeout as *const _);
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd of ours, a timeout of ours or none, no signal mask.
        unsafe { libc::ppoll(&mut poll, 1, pointer, std::ptr::null()) };
    }
}
