//! What happens to a live network. Each event costs little; the next solve starts from the last basis.

use crate::allocation::FlowId;
use crate::engine::Engine;
use crate::problem::{check_amount, check_flow, Error, Flow};

impl Engine {
    /// A flow arrives; returns its number.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field that is wrong.
    pub fn add_flow(&mut self, flow: Flow) -> Result<FlowId, Error> {
        check_flow(|| "flow".to_owned(), &flow, self.nodes, &self.arcs)?;
        Ok(self.admit(flow))
    }

    /// A flow leaves.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`].
    pub fn remove_flow(&mut self, id: FlowId) -> Result<(), Error> {
        self.entry(id)?;
        self.part(id);
        self.flows[id] = None;
        self.told_gone = true;
        Ok(())
    }

    /// A flow asks for another rate, bit/s.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`], or [`Error::Invalid`] for a rate that is not finite or below zero.
    pub fn change_rate(&mut self, id: FlowId, rate_bps: f64) -> Result<(), Error> {
        self.entry(id)?;
        check_amount(|| "rate_bps".to_owned(), rate_bps)?;
        if let Some(entry) = &mut self.flows[id] {
            entry.flow.rate_bps = rate_bps;
        }
        self.rescale(id);
        Ok(())
    }

    /// An arc goes down: it carries nothing until it is restored.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc.
    pub fn fail_link(&mut self, arc: usize) -> Result<(), Error> {
        self.check_arc(arc)?;
        self.down[arc] = true;
        self.apply_capacity(arc);
        Ok(())
    }

    /// An arc comes back with the capacity it last had.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc.
    pub fn restore_link(&mut self, arc: usize) -> Result<(), Error> {
        self.check_arc(arc)?;
        self.down[arc] = false;
        self.apply_capacity(arc);
        Ok(())
    }

    /// An arc gets another capacity, bit/s (kept for later while it is down).
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc or the capacity is not finite or below zero.
    pub fn set_capacity(&mut self, arc: usize, capacity_bps: f64) -> Result<(), Error> {
        self.check_arc(arc)?;
        check_amount(|| "capacity_bps".to_owned(), capacity_bps)?;
        self.arcs[arc].capacity_bps = capacity_bps;
        self.apply_capacity(arc);
        Ok(())
    }

    fn check_arc(&self, arc: usize) -> Result<(), Error> {
        if arc < self.arcs.len() {
            return Ok(());
        }
        Err(Error::Invalid {
            field: "arc".to_owned(),
            reason: format!("is {arc}: there are {} arcs", self.arcs.len()),
        })
    }
}
