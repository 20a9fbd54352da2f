//! Paths: from names of nodes to links, and from links to routes.

use super::{Builder, Described};
use crate::description::{AckPath, AckRule, FoundPath, PathChoice};
use crate::error::Error;
use crate::random::{derive_seed, generator, Purpose};
use crate::switch::WeightedPath;

impl Builder<'_> {
    fn node(&self, place: &str, name: &str) -> Result<u32, Error> {
        self.network
            .node(name)
            .ok_or_else(|| Error::description(place, format!("no link ends at a node {name}")))
    }

    /// The links of a path that is given by its nodes.
    fn links(&self, place: &str, nodes: &[String], ends: [&str; 2]) -> Result<Vec<u32>, Error> {
        let of_path = [nodes.first(), nodes.last()].map(|node| node.map_or("", String::as_str));
        let reason = format!("the path must lead from {} to {}", ends[0], ends[1]);
        Error::require(of_path == ends, place, reason)?;
        let hop = |pair: &[String]| {
            let [tail, head] = [self.node(place, &pair[0])?, self.node(place, &pair[1])?];
            self.network.arc_between(tail, head).ok_or_else(|| {
                Error::description(place, format!("no link joins {} and {}", pair[0], pair[1]))
            })
        };
        if let Some(twice) = (1..nodes.len()).find(|&index| nodes[..index].contains(&nodes[index]))
        {
            let reason = format!("the path passes {} twice: leave the loop out", nodes[twice]);
            return Err(Error::description(place, reason));
        }
        nodes.windows(2).map(hop).collect()
    }

    fn searched(
        &self,
        place: &str,
        search: FoundPath,
        index: u32,
        ends: [&str; 2],
    ) -> Result<Vec<u32>, Error> {
        let [source, destination] = [self.node(place, ends[0])?, self.node(place, ends[1])?];
        let seed = derive_seed(self.description.seed, Purpose::Hash, u64::from(index));
        let path = match search {
            FoundPath::Shortest => self.network.shortest_path(source, destination),
            FoundPath::Ecmp => {
                let hash = |node| derive_seed(seed, Purpose::Hash, u64::from(node));
                self.network.hashed_path(source, destination, hash)
            }
        };
        path.filter(|links| !links.is_empty()).ok_or_else(|| {
            Error::description(
                place,
                format!("no path leads from {} to {}", ends[0], ends[1]),
            )
        })
    }

    pub(super) fn paths(&self, of: Described<'_>) -> Result<Vec<WeightedPath>, Error> {
        let ends = [&of.flow.src[..], &of.flow.dst[..]];
        let mut paths = Vec::new();
        for (number, path) in of.flow.paths.iter().enumerate() {
            let place = of.at(&format!("paths[{number}]"));
            let links = match &path.path {
                PathChoice::Nodes(nodes) => self.links(&place, nodes, ends)?,
                PathChoice::Found(search) => self.searched(&place, *search, of.index, ends)?,
            };
            let fits = (0.0..=1e13).contains(&path.weight());
            Error::require(fits, place, "rate_bps is between 0 and 1e13")?;
            paths.push(WeightedPath {
                links,
                weight: path.weight(),
            });
        }
        Error::require(
            paths.iter().map(|path| path.weight).sum::<f64>() > 0.0,
            of.at("paths"),
            "a flow needs a path with a rate above 0",
        )?;
        Ok(paths)
    }

    pub(super) fn route(&mut self, paths: &[WeightedPath]) -> u32 {
        if let [path] = paths {
            return self.switches.pin(&path.links);
        }
        let rng = generator(self.description.seed, Purpose::Split, self.splits);
        self.splits += 1;
        self.switches.split(paths, rng)
    }

    /// The route of the acknowledgements of data on `paths`.
    pub(super) fn ack_route(
        &mut self,
        of: Described<'_>,
        paths: &[WeightedPath],
    ) -> Result<u32, Error> {
        let place = of.at("ack_path");
        let ends = [&of.flow.dst[..], &of.flow.src[..]];
        let rule = match &of.flow.ack_path {
            Some(AckPath::Nodes(nodes)) => {
                let links = self.links(&place, nodes, ends)?;
                return Ok(self.switches.pin(&links));
            }
            Some(AckPath::Rule(rule)) => *rule,
            None if paths.len() > 1 => AckRule::Shortest,
            None => AckRule::Reverse,
        };
        let back: Vec<WeightedPath> = paths
            .iter()
            .map(|path| WeightedPath {
                links: path.links.iter().rev().map(|link| link ^ 1).collect(),
                weight: path.weight,
            })
            .collect();
        Ok(match rule {
            AckRule::Reverse => self.route(&back[..1]),
            AckRule::Split => self.route(&back),
            AckRule::Shortest => {
                let links = self.searched(&place, FoundPath::Shortest, 0, ends)?;
                self.switches.pin(&links)
            }
        })
    }
}
