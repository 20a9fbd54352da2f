//! What is measured of a transfer: how long it stood still though it need not have, and how long repaired paths lay idle.

/// Pauses of the two directions, and paths that were repaired and not used yet.
#[derive(Debug)]
pub struct Pauses {
    /// By direction: since when bytes should arrive; none while a path is missing or an application holds them up.
    fair_since_ns: [Option<u64>; 2],
    delivered_ns: [u64; 2],
    through: [bool; 2],
    /// By path: when it was repaired, until it is used.
    repaired_ns: Vec<Option<u64>>,
    longest_pause_ns: u64,
    longest_unused_ns: u64,
}

impl Pauses {
    /// For this many paths, all of which work.
    pub fn new(paths: usize) -> Self {
        Self {
            fair_since_ns: [Some(0); 2],
            delivered_ns: [0; 2],
            through: [false; 2],
            repaired_ns: vec![None; paths],
            longest_pause_ns: 0,
            longest_unused_ns: 0,
        }
    }

    fn note_pause(&mut self, direction: usize, now_ns: u64) -> u64 {
        let (Some(since_ns), false) = (self.fair_since_ns[direction], self.through[direction])
        else {
            return 0;
        };
        let from_ns = since_ns.max(self.delivered_ns[direction]);
        let pause_ns = now_ns.saturating_sub(from_ns);
        self.longest_pause_ns = self.longest_pause_ns.max(pause_ns);
        pause_ns
    }

    /// Note that bytes of a direction came into order; returns for how long none had, of the time that counts.
    pub fn note_delivered(&mut self, direction: usize, now_ns: u64) -> u64 {
        let pause_ns = self.note_pause(direction, now_ns);
        self.delivered_ns[direction] = now_ns;
        pause_ns
    }

    /// Note that all bytes of a direction have been read.
    pub fn note_through(&mut self, direction: usize, now_ns: u64) {
        if !self.through[direction] {
            self.note_pause(direction, now_ns);
            self.through[direction] = true;
        }
        if self.through == [true; 2] {
            self.repaired_ns.fill(None);
        }
    }

    /// Note whether bytes of a direction can arrive.
    pub fn note_fair(&mut self, direction: usize, fair: bool, now_ns: u64) {
        match (self.fair_since_ns[direction], fair) {
            (None, true) => self.fair_since_ns[direction] = Some(now_ns),
            (Some(_), false) => {
                self.note_pause(direction, now_ns);
                self.fair_since_ns[direction] = None;
            }
            (Some(_), true) => {
                self.note_pause(direction, now_ns);
            }
            (None, false) => {}
        }
    }

    /// Note that a path works again.
    pub fn note_repaired(&mut self, path: usize, now_ns: u64) {
        if self.through != [true; 2] {
            self.repaired_ns[path] = Some(now_ns);
        }
    }

    /// Note that a host is held up: no path can be taken up before it goes on.
    pub fn put_off(&mut self, now_ns: u64) {
        for repaired_ns in self.repaired_ns.iter_mut().flatten() {
            *repaired_ns = now_ns;
        }
    }

    /// Note that a path broke again.
    pub fn note_broken(&mut self, path: usize) {
        self.repaired_ns[path] = None;
    }

    /// Note that something arrived over a path.
    pub fn note_used(&mut self, path: usize, now_ns: u64) {
        if let Some(repaired_ns) = self.repaired_ns[path].take() {
            self.longest_unused_ns = self.longest_unused_ns.max(now_ns - repaired_ns);
        }
    }

    /// The longest pause while a path worked in each direction, in nanoseconds.
    pub fn longest_pause_ns(&self) -> u64 {
        self.longest_pause_ns
    }

    /// The longest time that a repaired path brought nothing, in nanoseconds; those that still bring nothing count until
    /// `now_ns`.
    pub fn longest_unused_ns(&self, now_ns: u64) -> u64 {
        let waiting = self.repaired_ns.iter().flatten();
        let longest = waiting.map(|repaired_ns| now_ns - repaired_ns).max();
        self.longest_unused_ns.max(longest.unwrap_or(0))
    }
}
