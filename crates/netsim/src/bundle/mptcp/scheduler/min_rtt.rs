//! Least round-trip time first (RFC 8684 leaves it open; the default of Linux).

use super::{Scheduler, View};

/// The subflow of least smoothed round-trip time whose window has room.
#[derive(Debug, Clone)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        view.fastest_with_room().map(|flow| flow.index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{choice, flow};
    use super::*;

    #[test]
    fn the_fast_one_first_and_then_the_next() {
        let flows = [flow(0, 50, 10, 0), flow(1, 10, 10, 0)];
        assert_eq!(choice(&mut MinRtt, &flows, [5, 100]), Some(1));
        let flows = [flow(0, 50, 10, 0), flow(1, 10, 10, 10)];
        assert_eq!(choice(&mut MinRtt, &flows, [5, 100]), Some(0));
    }
}
