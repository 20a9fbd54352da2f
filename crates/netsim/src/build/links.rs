//! Links: from their descriptions to the network, and to transmitters and media.

use crate::description::{Description, LinkDescription};
use crate::error::Error;
use crate::link::{Link, LinkSettings};
use crate::network::Network;
use crate::random::{generator, Purpose};
use crate::time::{Nanos, MICROSECOND};
use crate::wifi::media::Media;
use crate::wifi_description::WifiDescription;
use crate::wireless::Scheduled;

/// Bytes of an IPv4 header.
const IPV4_BYTES: u32 = 20;

/// The graph of all links.
pub(super) fn network(links: &[LinkDescription]) -> Result<Network, Error> {
    let mut network = Network::default();
    for (index, link) in links.iter().enumerate() {
        let settings = match &link.wifi {
            None => serial(index, link)?,
            Some(wifi) => wireless(index, link, wifi)?,
        };
        let place = format!("links[{index}].ends");
        let [a, b] = [network.intern(&link.ends[0]), network.intern(&link.ends[1])];
        Error::require(a != b, &place, "a link joins two nodes")?;
        let reason = format!("{} and {} are joined already", link.ends[0], link.ends[1]);
        Error::require(network.arc_between(a, b).is_none(), place, reason)?;
        network.join([a, b], settings);
    }
    Ok(network)
}

pub(super) fn serial(index: usize, link: &LinkDescription) -> Result<LinkSettings, Error> {
    let place = |field: &str| format!("links[{index}].{field}");
    let within =
        |field: &str, value: f64, range: std::ops::RangeInclusive<f64>| -> Result<f64, Error> {
            let reason = format!(
                "{value} is not between {} and {}",
                range.start(),
                range.end()
            );
            Error::require(range.contains(&value), place(field), reason)?;
            Ok(value)
        };
    let needed = |field: &str, value: Option<f64>| {
        let reason = "a link needs rate_bps and delay_us, or wifi";
        value.ok_or_else(|| Error::description(place(field), reason))
    };
    let rate_bps = needed("rate_bps", link.rate_bps)?;
    let delay_us = needed("delay_us", link.delay_us)?;
    Ok(LinkSettings {
        rate_bps: within("rate_bps", rate_bps, 1.0..=1e13)?.round() as u64,
        delay: micros(within("delay_us", delay_us, 0.0..=1e9)?),
        queue_packets: link.queue_packets,
        queue_bytes: link.queue_bytes,
        loss: within("loss", link.loss, 0.0..=0.999_999)?,
        jitter: micros(within("jitter_us", link.jitter_us, 0.0..=1e9)?),
    })
}

fn wireless(
    index: usize,
    link: &LinkDescription,
    wifi: &WifiDescription,
) -> Result<LinkSettings, Error> {
    let given = [
        ("rate_bps", link.rate_bps.is_some()),
        ("delay_us", link.delay_us.is_some()),
        ("queue_bytes", link.queue_bytes.is_some()),
        ("loss", link.loss != 0.0),
        ("jitter_us", link.jitter_us != 0.0),
    ];
    for (field, is_given) in given {
        let place = format!("links[{index}].{field}");
        Error::require(!is_given, place, "a link with wifi has none")?;
    }
    if let Some((field, reason)) = wifi.problem() {
        let place = format!("links[{index}].wifi.{field}");
        return Err(Error::description(place, reason));
    }
    Ok(LinkSettings {
        rate_bps: wifi.phy_rate_bps.round() as u64,
        delay: 0,
        queue_packets: link.queue_packets,
        queue_bytes: None,
        loss: 0.0,
        jitter: 0,
    })
}

fn micros(time_us: f64) -> Nanos {
    (time_us * MICROSECOND as f64 + 0.5) as Nanos
}

/// Both directions of all links, and the media that wireless ones share.
pub(super) fn carriers(
    description: &Description,
    network: &Network,
) -> Result<(Vec<Link>, Vec<Scheduled>), Error> {
    let mut media = Media::default();
    let mut links_of: Vec<Vec<u32>> = Vec::new();
    let link_header_bytes = description.packet_overhead_bytes.saturating_sub(IPV4_BYTES);
    let mut links = Vec::new();
    for (index, link) in description.links.iter().enumerate() {
        let arcs = [2 * index as u32, 2 * index as u32 + 1];
        let places = match &link.wifi {
            Some(wifi) => {
                let nodes = [
                    network.arcs()[arcs[0] as usize].tail,
                    network.arcs()[arcs[0] as usize].head,
                ];
                let (seed, queue_packets) = (description.seed, link.queue_packets);
                let joined = media.join(seed, wifi, queue_packets, link_header_bytes, nodes);
                let differs =
                    |reason| Error::description(format!("links[{index}].wifi.channel"), reason);
                let places = joined.map_err(differs)?;
                links_of.resize_with(media.all().len(), Vec::new);
                links_of[places[0].medium as usize].extend(arcs);
                Some(places)
            }
            None => None,
        };
        for (direction, arc) in arcs.into_iter().enumerate() {
            let settings = network.arcs()[arc as usize].settings;
            let draws = |purpose| generator(description.seed, purpose, u64::from(arc));
            links.push(match places {
                Some(places) => Link::shared(settings, places[direction]),
                None => Link::new(settings, draws(Purpose::Loss), draws(Purpose::Jitter)),
            });
        }
    }
    let scheduled = std::iter::zip(media.into_all(), links_of).map(|(medium, links)| Scheduled {
        medium,
        timer: Nanos::MAX,
        links,
    });
    Ok((links, scheduled.collect()))
}
