"""Links that get another rate, delay or state while they carry flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from controller.decide.component import Component, Context
from controller.decide.manager import FlowManager
from controller.errors import NotFound, PreconditionFailed
from controller.model.callers import Caller
from controller.model.client_events import ClientEventKind
from controller.model.requests import LinkChange
from controller.state.flow import Flow
from topologies.model import Network

LINK = "link"
"""Kind of the records of links that are not as the topology file has them; their keys are names."""


def name_of(network: Network, link: str) -> str:
    """Return what the file calls a link, which is named in either direction.

    Raises:
        NotFound: there is no such link.
    """
    try:
        return network.link(link).name
    except KeyError:
        raise NotFound("link_id", f"there is no link {link!r}; GET /v1/links lists them") from None


class LinkChanges(Component):
    """Changes links, stores what they are, and lets the flows have what there is then."""

    def __init__(self, shared: Context, flows: FlowManager) -> None:
        super().__init__(shared)
        self._flows = flows

    def check(self, link: str, if_revisions: frozenset[int] | None = None) -> str:
        """Return the name of a link in the file.

        Raises:
            NotFound: there is no such link.
            PreconditionFailed: it has none of the revisions.
        """
        name = name_of(self._state.live.network, link)
        revision = self._state.live.revision(name)
        if if_revisions is not None and revision not in if_revisions:
            raise PreconditionFailed(
                "link_id", f"{name} has changed meanwhile (it has revision {revision}); look again"
            )
        return name

    def apply(self, changes: Mapping[str, LinkChange], caller: Caller, now: float) -> None:
        """Change links; `take_changed_links` says afterwards which of them went or returned."""
        for name, change in changes.items():
            self._state.live.change_link(name, change.rate_bps, change.delay_s, change.enabled)
            self._outbox.store(LINK, name, self._record(name))
            changed = {key: value for key, value in asdict(change).items() if value is not None}
            text = f"link {name} was changed by {caller}"
            facts = {"link": name} | changed | caller.facts()
            self._outbox.tell(ClientEventKind.LINK_CHANGED, text, facts)
        if changes:
            self._fit_manual_flows(now)
            self._flows.capacity_changed(now)

    def restore(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Let links be as they were before a restart."""
        for name, record in records.items():
            if self._state.live.has_link(name):
                self._state.live.change_link(name, record["rate_bps"], record["delay_s"], record["enabled"])

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the links that are not as the file has them, as `restore` takes them."""
        return {name: self._record(name) for name in self._state.live.changed_links()}

    def _record(self, link: str) -> dict[str, Any]:
        arc = next(arc for arc in self._state.live.arcs.values() if arc.link == link)
        enabled = self._state.live.is_enabled(link)
        return {"rate_bps": arc.rate_bps, "delay_s": arc.delay_s, "enabled": enabled}

    def _fit_manual_flows(self, now: float) -> None:
        """Take off flows with rates given by hand what links do not carry; other flows are solved for."""
        for flow in self._state.flows:
            if flow.given_bps is not None:
                share = self._share_that_fits(flow)
                if share < 1:
                    rates = tuple(stream.rate_bps * share for stream in flow.streams)
                    self._flows.rates.apply({flow.id: rates}, now)

    def _share_that_fits(self, flow: Flow) -> float:
        arcs = {arc for path in flow.arcs for arc in path}
        loads = {arc: self._state.flows.load_bps(arc) for arc in arcs}
        shares = (self._state.allocatable_bps(arc) / load for arc, load in loads.items() if load > 0)
        share = min(shares, default=1.0)
        return share if share < _SLACK else 1.0


_SLACK = 1 - 1e-3
"""Rates given by hand may exceed a link by a little (`controller.decide.manual_paths`)."""
