//! The first basis: commodities routed one after another over the room that is left.

use super::{Solver, CROWD_SMOOTHING, SMOOTHING};
use crate::graph::NONE;

/// How many times as long as its main path another path of a commodity may be at first, but for one more
/// arc of the longest delay.
const DETOUR: f64 = 3.0;
/// Arcs with less of their capacity left are expected to fill up.
const NARROW: f64 = 0.05;

impl Solver {
    /// Starts from an empty basis with, for each commodity, one path that has room for its whole request:
    /// the one that carried most of it, or another; returns the main paths of those that found none.
    ///
    /// What is worth most and costs least comes first.
    pub fn crash(&mut self) -> Vec<u32> {
        let groups = self.master.groups.iter();
        let main: Vec<u32> = groups.map(|g| self.master.main_path(g)).collect();
        self.master.reset();
        self.accurate_at = usize::MAX;
        let mut order: Vec<u32> = main.iter().copied().filter(|&c| c != NONE).collect();
        let columns = &self.master.columns;
        order.sort_by(|&a, &b| {
            let (a, b) = (&columns[a as usize], &columns[b as usize]);
            let worth = b.value.total_cmp(&a.value);
            worth.then(a.cost.total_cmp(&b.cost))
        });
        let mut room = self.master.capacity.clone();
        let mut path = Vec::new();
        order.retain(|&first| {
            let Some(column) = self.with_room(first, &room, &mut path) else {
                return true;
            };
            let group = self.master.columns[column as usize].group as usize;
            let request = self.master.groups[group].request;
            for (arc, load) in self.master.entries(column) {
                room[arc as usize] -= load * request;
            }
            self.master.set_key(column);
            false
        });
        self.master.compute_values();
        let narrow = |arc: &u32| room[*arc as usize] < NARROW * self.master.capacity[*arc as usize];
        let full: Vec<u32> = (0..room.len() as u32).filter(narrow).collect();
        self.master.expect_prices(full.into_iter());
        self.smoothing = match self.is_crowded() {
            true => CROWD_SMOOTHING,
            false => SMOOTHING,
        };
        order
    }

    /// The column `first`, or another of its commodity, that has room for the whole request.
    fn with_room(&mut self, first: u32, room: &[f64], path: &mut Vec<u32>) -> Option<u32> {
        let (id, cost) = {
            let column = &self.master.columns[first as usize];
            (column.group, column.cost)
        };
        let request = self.master.groups[id as usize].request;
        if self.fits(first, request, room) {
            return Some(first);
        }
        let commodity = &self.commodities[id as usize];
        if commodity.fixed || commodity.max_delay_s.is_some() {
            return None;
        }
        let ends = (commodity.source, commodity.target);
        let length = |arc: u32| match request <= room[arc as usize] {
            true => self.cost[arc as usize],
            false => f64::INFINITY,
        };
        let limit = DETOUR * cost + 1.0;
        self.pricer.prepare(&self.graph, ends.1);
        self.pricer
            .shortest_by(&self.graph, length, ends, limit, path)?;
        let column = self.add_path(id, path);
        let open = !self.master.columns[column as usize].banned;
        (open && self.fits(column, request, room)).then_some(column)
    }

    fn fits(&self, column: u32, request: f64, room: &[f64]) -> bool {
        let mut entries = self.master.entries(column);
        entries.all(|(arc, load)| load * request <= room[arc as usize])
    }
}
