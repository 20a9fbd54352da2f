//! D-SACK at the connection's level, as the MPTCP model of ns-3 has it (Chihani and Collange 2011, `DupDSACK` of the published code).

use std::collections::BTreeSet;

use super::DataSender;
use crate::hosts::Hosts;
use crate::time::Nanos;

/// What blocks have reported of data that waits for the connection.
///
/// A block says that its subflow is in order as far as it can be; what the connection waits for is with the subflow whose first
/// unacknowledged segment nobody has reported. The duplicate counts against that one.
#[derive(Debug, Default)]
pub struct Ns3DSackSender {
    /// Where segments begin that were reported, by their data sequence numbers.
    reported: BTreeSet<u64>,
    /// Where segments begin that were sent again.
    resent: BTreeSet<u64>,
    /// The segment that was last preferred to one of an earlier subflow.
    preferred: Option<u64>,
}

impl Ns3DSackSender {
    /// A segment was sent again.
    pub fn on_resent(&mut self, data: u64) {
        self.resent.insert(data);
    }

    /// Take a block that begins at number `start` of `subflow`.
    pub fn on_report(
        &mut self,
        now: Nanos,
        [subflow, start]: [u64; 2],
        sender: &DataSender,
        ends: &[[u32; 2]],
        hosts: &mut Hosts,
    ) {
        let Some(data) = sender.data_of(subflow as usize, start) else {
            return;
        };
        let repeated = !self.reported.insert(data);
        let heads: Vec<Option<u64>> = (0..ends.len())
            .map(|index| {
                let tcp = &hosts.get(ends[index][0]).tcp;
                let head = tcp.acknowledged();
                (head < tcp.next()).then(|| sender.data_of(index, head))?
            })
            .collect();
        // The data ACK may have come over another subflow: what this one has not acknowledged must stay known as reported.
        let oldest = heads
            .iter()
            .flatten()
            .fold(data, |least, &head| least.min(head));
        self.forget_below(oldest.min(sender.acknowledged()));
        let waited_for = self.waited_for(&heads);
        let owner = waited_for.unwrap_or(subflow as usize);
        if repeated && self.resent.contains(&data) {
            hosts
                .get_mut(ends[owner][0])
                .tcp
                .on_needless_retransmission();
        } else if waited_for.is_some() {
            hosts.get_mut(ends[owner][0]).tcp.charge_duplicate(now);
        }
        hosts.touch(ends[owner][0]);
    }

    /// The subflow that has what the connection waits for: of their first unacknowledged segments, the one with the least data sequence
    /// number that was not reported. A later subflow's segment is preferred to an earlier one's once only.
    fn waited_for(&mut self, heads: &[Option<u64>]) -> Option<usize> {
        let mut chosen: Option<(usize, u64)> = None;
        for (index, head) in heads.iter().enumerate() {
            let Some(data) = head.filter(|data| !self.reported.contains(data)) else {
                continue;
            };
            match chosen {
                None => chosen = Some((index, data)),
                Some((_, other))
                    if data < other && self.preferred.map_or(true, |last| last < data) =>
                {
                    self.preferred = Some(data);
                    chosen = Some((index, data));
                }
                Some(_) => {}
            }
        }
        chosen.map(|(index, _)| index)
    }

    fn forget_below(&mut self, acknowledged: u64) {
        self.reported = self.reported.split_off(&acknowledged);
        self.resent = self.resent.split_off(&acknowledged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_subflow_is_preferred_once_and_what_was_reported_is_not_waited_for() {
        let mut sender = Ns3DSackSender::default();
        assert_eq!(sender.waited_for(&[Some(100), Some(50)]), Some(1));
        assert_eq!(sender.waited_for(&[Some(100), Some(50)]), Some(0));
        assert_eq!(sender.waited_for(&[Some(100), Some(60)]), Some(1));
        assert_eq!(sender.waited_for(&[None, Some(60)]), Some(1));
        sender.reported.insert(100);
        assert_eq!(sender.waited_for(&[Some(100), Some(60)]), Some(1));
        sender.reported.insert(60);
        assert_eq!(sender.waited_for(&[Some(100), Some(60)]), None);
    }
}
