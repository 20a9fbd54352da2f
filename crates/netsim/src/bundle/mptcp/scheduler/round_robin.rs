//! One after the other.

use super::{Scheduler, View};

/// The next subflow, in the order of their numbers, whose window has room.
#[derive(Debug, Clone, Default)]
pub struct RoundRobin {
    /// The number from which the search begins.
    next: usize,
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let mut with_room = view.subflows.iter().filter(|flow| flow.has_room());
        let first = with_room.clone().next()?.index;
        let chosen = with_room.find(|flow| flow.index >= self.next);
        let index = chosen.map_or(first, |flow| flow.index);
        self.next = index + 1;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{choice, flow};
    use super::*;

    #[test]
    fn all_take_turns_and_full_ones_are_passed_over() {
        let mut scheduler = RoundRobin::default();
        let flows = [flow(0, 50, 10, 0), flow(1, 10, 10, 10), flow(2, 5, 10, 0)];
        let chosen: Vec<_> = (0..4)
            .map(|_| choice(&mut scheduler, &flows, [50, 100]))
            .collect();
        assert_eq!(chosen, [Some(0), Some(2), Some(0), Some(2)]);
    }
}
