//! The first basis: commodities routed one after another over the room that is left.

use crate::graph::NONE;
use crate::lp::bounds;
use crate::solver::Solver;

/// Starts from an empty basis with, for each commodity, one path that has room for its whole request:
/// the one that carried most of it, or another; returns the main paths of those that found none.
///
/// What is worth most and costs least comes first.
pub(crate) fn crash(solver: &mut Solver) -> Vec<u32> {
    let groups = solver.master.groups.iter();
    let main: Vec<u32> = groups
        .map(|g| bounds::main_path(&solver.master, g))
        .collect();
    bounds::reset(&mut solver.master);
    solver.run.accurate_at = usize::MAX;
    let mut order: Vec<u32> = main.iter().copied().filter(|&c| c != NONE).collect();
    let columns = &solver.master.columns;
    order.sort_by(|&a, &b| {
        let (a, b) = (&columns[a as usize], &columns[b as usize]);
        let worth = b.value.total_cmp(&a.value);
        worth.then(a.cost.total_cmp(&b.cost))
    });
    let mut room = solver.master.capacity.clone();
    let mut path = Vec::new();
    order.retain(|&first| {
        let Some(column) = with_room(solver, first, &room, &mut path) else {
            return true;
        };
        let group = solver.master.columns[column as usize].group as usize;
        let request = solver.master.groups[group].request;
        for (arc, load) in solver.master.entries(column) {
            room[arc as usize] -= load * request;
        }
        solver.master.set_key(column);
        false
    });
    solver.master.compute_values();
    let narrow = |arc: &u32| {
        room[*arc as usize] < solver.settings.start.narrow * solver.master.capacity[*arc as usize]
    };
    let full: Vec<u32> = (0..room.len() as u32).filter(narrow).collect();
    solver.master.expect_prices(full.into_iter());
    solver.pricing.smoothing = match solver.is_crowded() {
        true => solver.settings.pricing.smoothing_of_crowd,
        false => solver.settings.pricing.smoothing,
    };
    order
}

/// The column `first`, or another of its commodity, that has room for the whole request.
fn with_room(solver: &mut Solver, first: u32, room: &[f64], path: &mut Vec<u32>) -> Option<u32> {
    let (id, cost) = {
        let column = &solver.master.columns[first as usize];
        (column.group, column.cost)
    };
    let request = solver.master.groups[id as usize].request;
    if fits(solver, first, request, room) {
        return Some(first);
    }
    let commodity = &solver.pool.commodities[id as usize];
    if commodity.fixed || commodity.max_delay_s.is_some() {
        return None;
    }
    let ends = (commodity.source, commodity.target);
    let length = |arc: u32| match request <= room[arc as usize] {
        true => solver.pricing.cost[arc as usize],
        false => f64::INFINITY,
    };
    let limit = solver.settings.start.detour * cost + 1.0;
    solver.pricing.search.prepare(&solver.graph, ends.1);
    solver
        .pricing
        .search
        .shortest_by(&solver.graph, length, ends, limit, path)?;
    let column = solver.add_path(id, path);
    let open = !solver.master.columns[column as usize].banned;
    (open && fits(solver, column, request, room)).then_some(column)
}

fn fits(solver: &Solver, column: u32, request: f64, room: &[f64]) -> bool {
    let mut entries = solver.master.entries(column);
    entries.all(|(arc, load)| load * request <= room[arc as usize])
}
