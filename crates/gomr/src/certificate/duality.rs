//! The proof that comes with an answer.
//!
//! For any prices `π ≥ 0` the first objective is at most
//! `Σ_e C_e π_e + Σ_k d_k max(0, v_k − dist_k(π))` (weak duality), whatever way the prices were found.
//! The prices of the final basis for the first objective alone make this bound tight exactly when the
//! first objective is optimal, so the gap certifies it, independent of `M`.

use crate::lp::sizes;
use crate::pricing::constrained::cheapest_within;
use crate::problem::Error;
use crate::solver::Solver;

/// Bounds proven for the first objective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Proof {
    /// First objective of the rates found.
    pub value: f64,
    /// No rates can do better.
    pub bound: f64,
    /// Largest share of what one arc carries, or one commodity asks for, that adds to the distance of the two. Beside
    /// large capacities the distance itself does not show what is lost on small ones.
    pub worst: f64,
}

impl Proof {
    pub fn gap(&self) -> f64 {
        if self.bound <= 0.0 {
            return 0.0;
        }
        ((self.bound - self.value) / self.bound).max(0.0)
    }
}

impl Solver {
    /// Solves and certifies, raising `M` until the first objective is proven optimal.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when the simplex or the certificate fails.
    pub fn solve(&mut self) -> Result<Proof, Error> {
        let gain = self.run.least_gain;
        let outcome = self.solve_to_proof();
        self.run.least_gain = gain;
        outcome
    }

    fn solve_to_proof(&mut self) -> Result<Proof, Error> {
        for attempt in 0..24 {
            self.optimise(attempt == 0)?;
            let proof = self.certify();
            let is_fine = !sizes::is_uneven(&self.master)
                || proof.worst <= self.settings.certificate.each
                || attempt >= self.settings.certificate.strict_attempts;
            if proof.gap() <= self.settings.certificate.gap && is_fine {
                return Ok(proof);
            }
            if self.run.least_gain > self.settings.simplex.least_gain {
                self.run.least_gain = f64::max(
                    self.settings.simplex.least_gain,
                    self.settings.certificate.finer * self.run.least_gain,
                );
                continue;
            }
            let big_m = 4.0 * self.master.big_m;
            self.master.set_big_m(big_m);
        }
        Err(self.not_solved("the throughput is not proven optimal"))
    }

    /// Prices of the final basis for the first objective alone, and the bound they prove.
    pub fn certify(&mut self) -> Proof {
        let mut price = self.first_prices();
        // Any prices prove a bound; a hair more than the exact ones keeps the rounding of a distance from
        // counting as a surplus, which a request far beyond all capacities would magnify.
        price
            .iter_mut()
            .for_each(|p| *p *= 1.0 + self.settings.certificate.price_excess);
        self.measure(&price);
        let mut proof = Proof::default();
        for (e, &p) in price.iter().enumerate() {
            let capacity = self.master.capacity[e];
            proof.bound += p * capacity;
            if p > 0.0 && capacity > 0.0 {
                let idle = self.master.slack[e].max(0.0);
                proof.worst = proof.worst.max(p * idle / capacity);
            }
        }
        for id in 0..self.pool.commodities.len() {
            if !self.master.groups[id].active {
                continue;
            }
            let distance = self.first_distance(id, &price);
            let surplus = self.pool.commodities[id].value - distance;
            let (request, served) = (self.master.groups[id].request, self.served(id));
            proof.bound += request * surplus.max(0.0);
            proof.value += self.pool.commodities[id].value * served;
            if surplus > 0.0 && request > 0.0 {
                proof.worst = proof.worst.max(surplus * (1.0 - served / request));
            }
        }
        proof
    }

    /// Takes prices as lengths of the distances that prove a bound.
    fn measure(&mut self, price: &[f64]) {
        for commodity in &self.pool.commodities {
            self.proof.class(&self.graph, commodity.ack_ratio);
        }
        self.proof.update(
            &self.graph,
            price,
            &self.pricing.usable,
            self.settings.pricing.priced_arc_nodes,
        );
    }

    /// The cut that the first-objective prices form: `Σ_e C_e π_e`, and `dist_k(π)` of each commodity.
    pub fn cut(&mut self) -> (f64, Vec<f64>) {
        let price = self.first_prices();
        self.measure(&price);
        let room = price
            .iter()
            .zip(&self.master.capacity)
            .map(|(p, c)| p * c)
            .sum();
        let distance = (0..self.pool.commodities.len())
            .map(|id| match self.master.groups[id].active {
                true => self.first_distance(id, &price),
                false => 0.0,
            })
            .collect();
        (room, distance)
    }

    /// Rate admitted of a commodity, within its request.
    pub fn served(&self, id: usize) -> f64 {
        let group = &self.master.groups[id];
        let paths = [&group.key].into_iter().chain(&group.working);
        paths
            .filter(|&&c| c != group.unserved)
            .map(|&c| self.master.rate(c).max(0.0))
            .sum::<f64>()
            .min(group.request)
    }

    /// Whether every commodity that has a path gets what it asks for.
    pub fn serves_all(&self) -> bool {
        (0..self.pool.commodities.len()).all(|id| {
            let group = &self.master.groups[id];
            let open = |c: &u32| !self.master.columns[*c as usize].banned;
            !group.active
                || self.served(id) >= group.request * (1.0 - 1e-9)
                || !group.columns.iter().any(open)
        })
    }

    fn first_distance(&mut self, id: usize, price: &[f64]) -> f64 {
        let commodity = &self.pool.commodities[id];
        if commodity.fixed {
            let known = self.master.groups[id].columns.iter();
            return known
                .filter(|&&c| !self.master.columns[c as usize].banned)
                .map(|&c| self.master.dot(price, c))
                .fold(f64::INFINITY, f64::min);
        }
        let key = self.master.groups[id].key;
        if key != self.master.groups[id].unserved && self.master.dot(price, key) == 0.0 {
            return 0.0;
        }
        let mut acks = 0.0;
        for &(arc, load) in &commodity.acks {
            if !self.pricing.usable[arc as usize] {
                return f64::INFINITY;
            }
            acks += load * price[arc as usize];
        }
        let class = self.proof.class(&self.graph, commodity.ack_ratio);
        let (source, target) = (commodity.source, commodity.target);
        let Some(limit) = commodity.max_delay_s else {
            return acks + self.proof.distance(&self.graph, (source, target), class);
        };
        let tree = self.proof.tree(&self.graph, source, class);
        let mut path = Vec::new();
        if !tree.path_to(&self.graph, target, &mut path) {
            return f64::INFINITY;
        }
        if self.graph.path_delay(&path) <= limit {
            return acks + tree.distance[target as usize];
        }
        let length = self.proof.length(class);
        cheapest_within(&self.graph, length, source, target, limit, &mut path)
            .map_or(f64::INFINITY, |length| acks + length)
    }

    /// Prices that solve `π W = v_j − v_key(j)`, not below zero.
    pub fn first_prices(&self) -> Vec<f64> {
        let master = &self.master;
        let value = |c: u32| master.columns[c as usize].value;
        let key = |c: u32| master.groups[master.columns[c as usize].group as usize].key;
        let mut price = vec![0.0; master.capacity.len()];
        // The second round refines the first: the inverse has drifted since it was made.
        for _ in 0..2 {
            let unpaid = |(i, &c): (usize, &u32)| {
                let gain = value(c) - value(key(c));
                let paid = master.dot(&price, c) - master.dot(&price, key(c));
                (i, gain - paid)
            };
            let rest = master.working.iter().enumerate().map(unpaid);
            let rest: Vec<(usize, f64)> = rest.filter(|&(_, rest)| rest != 0.0).collect();
            for (&e, more) in master.tight.iter().zip(master.inverse.rows(&rest)) {
                price[e as usize] += more;
            }
        }
        for &e in &master.tight {
            // Rounding noise would only make trees differ from one solve to the next.
            if price[e as usize] <= 1e-12 {
                price[e as usize] = 0.0;
            }
        }
        price
    }
}
