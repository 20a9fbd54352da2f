//! Media by channel, and the stations of the links on them.

use std::collections::BTreeMap;

use super::medium::Medium;
use super::rate_control::RateControl;
use crate::link::MediumPair;
use crate::random::{generator, Purpose};
use crate::wifi_description::WifiDescription;

/// The media of a network's wireless links; stations are told apart by the nodes that they belong to.
#[derive(Debug)]
pub struct Media<Node> {
    media: Vec<Medium>,
    channels: BTreeMap<String, u32>,
    stations: BTreeMap<(u32, Node), usize>,
}

impl<Node> Default for Media<Node> {
    fn default() -> Self {
        Self {
            media: Vec::new(),
            channels: BTreeMap::new(),
            stations: BTreeMap::new(),
        }
    }
}

impl<Node: Ord> Media<Node> {
    /// Put a link on its medium; the places of its two directions. A medium that it begins draws by `seed`.
    ///
    /// # Errors
    /// Links of one channel whose media differ, as a sentence's end.
    pub fn join(
        &mut self,
        seed: u64,
        wifi: &WifiDescription,
        queue_packets: Option<u64>,
        link_header_bytes: u32,
        ends: [Node; 2],
    ) -> Result<[MediumPair; 2], &'static str> {
        let settings = wifi.medium(queue_packets, link_header_bytes);
        let channel = wifi.channel.as_ref();
        let known = channel.and_then(|channel| self.channels.get(channel));
        let index = known.copied().unwrap_or(self.media.len() as u32);
        if index as usize == self.media.len() {
            let draws = |purpose| generator(seed, purpose, u64::from(index));
            let (backoff, fading) = (draws(Purpose::Backoff), draws(Purpose::Channel));
            self.media.push(Medium::new(settings, backoff, fading));
            self.channels
                .extend(channel.map(|channel| (channel.clone(), index)));
        }
        let medium = &mut self.media[index as usize];
        if *medium.settings() != settings {
            return Err("links of one channel have the same settings but for distance_m, phy_rate_bps and rate_control");
        }
        let rate = wifi.standard.rate(wifi.phy_rate_bps).expect("a known rate");
        let control = RateControl::new(wifi.rate_control, wifi.standard, rate);
        let stations = ends.map(|node| {
            *self
                .stations
                .entry((index, node))
                .or_insert_with(|| medium.add_station())
        });
        let pairs = medium.join(stations, wifi.distance_m, &control);
        Ok(pairs.map(|pair| MediumPair {
            medium: index,
            pair,
        }))
    }
}

impl<Node> Media<Node> {
    /// All media, by number.
    pub fn all(&mut self) -> &mut [Medium] {
        &mut self.media
    }

    /// All media, by number, to which no link is added any more.
    pub fn into_all(self) -> Vec<Medium> {
        self.media
    }
}
