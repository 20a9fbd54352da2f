"""Streams that hosts open and close while their flows run: added and taken off as the network gains by it.

A flow is only given more streams than it was granted where its client said that it opens them. Planning adds
them (`Flow.most_paths`): their rules are installed before the owner is told. The owner answers with the state
of all its streams, so a report that is lost or comes twice does no harm. A stream that carries nothing for a
while is taken off: the owner is told, and its rules stay until the host has closed it. What a host doesn't
answer has a time after which it is taken for failed, or closed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from controller.decide.component import Component, Context
from controller.decide.notifications import flow_fields
from controller.decide.rates import Rates
from controller.decide.recovery import Recovery
from controller.model.client_events import ClientEventKind
from controller.model.events import StreamsReported
from controller.model.journal import JournaledDict
from controller.model.messages import AllocationChanged, Notify
from controller.state.flow import CLOSE_TIMEOUT_S, Flow, Stream, StreamState

_IDLE_S = 1.0
"""A stream that carries nothing for this time is taken off, if nothing moves its flow at the time."""

_BUSY_S = 0.5
"""Interval between two looks at a flow that is being moved."""


class HostStreams(Component):
    """Follows what hosts say of their streams, and takes off those that carry nothing or did not open."""

    def __init__(self, shared: Context, recovery: Recovery, rates: Rates) -> None:
        super().__init__(shared)
        self._recovery = recovery
        self._rates = rates
        self._idle_until: JournaledDict[str, float] = JournaledDict()  # by flow

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        flows = self._state.flows
        changing = flows.with_changing_streams()
        times = [stream.until for flow in changing for stream in (*flow.streams, *flow.leaving)]
        # One that has just become idle is noted at once.
        times += [self._idle_until.get(flow.id, 0.0) for flow in flows.with_idle_streams()]
        first = min(times, default=math.inf)
        return None if first == math.inf else first

    def report(self, event: StreamsReported, now: float) -> None:
        """Record what a host says of the streams of a flow: all of them."""
        flow = self._state.flows.get(event.flow_id)
        if flow is None or not flow.max_streams or not event.caller.may_change(flow.belongs_to):
            return
        opened = [s for s in flow.streams if s.is_opening and s.source_port in event.open_ports]
        for stream in opened:
            stream.state, stream.until = StreamState.OPEN, math.inf
            flow.failed_streams = 0
        failed = [s for s in flow.streams if s.is_opening and s.source_port in event.failed_ports]
        closed = [s for s in flow.leaving if s.source_port not in event.open_ports]
        spare_ports = self._spare_ports(flow, event.spare_ports)
        if self._recovery.is_moving(flow.id):
            for stream in failed:
                stream.until = now + _BUSY_S  # its rules are a part of those that are on their way
            failed = []
        if not opened and not failed and not closed and spare_ports == flow.spare_ports:
            return
        leaving = tuple(stream for stream in flow.leaving if stream not in closed)
        self._remove_rules(flow, (*failed, *closed))
        if failed:
            self._take_off(flow, failed, spare_ports, leaving, "could not be opened by its host", now)
        else:
            self._state.flows.change_streams(flow, flow.streams, spare_ports, leaving)
            self._rates.save(flow)
            self._recovery.rates_shared(now)  # it may have been short of ports

    def _spare_ports(self, flow: Flow, reported: Sequence[int]) -> tuple[int, ...]:
        """Return the ports that are bound for more streams; those of streams on their way stay."""
        pending = [port for port in flow.spare_ports if port in self._recovery.ports_of_move(flow.id)]
        return tuple(dict.fromkeys((*pending, *reported)))[: flow.max_streams]

    def tick(self, now: float) -> None:
        """Take off what is due."""
        for flow in self._state.flows.with_changing_streams():
            self._close_overdue(flow, now)
            self._open_overdue(flow, now)
        idle = self._state.flows.with_idle_streams()
        for flow_id in self._idle_until.keys() - {flow.id for flow in idle}:
            del self._idle_until[flow_id]
        for flow in idle:
            if flow.id not in self._idle_until:
                self._idle_until[flow.id] = now + _IDLE_S
            elif self._idle_until[flow.id] <= now:
                del self._idle_until[flow.id]
                self._take_off_idle(flow, now)

    def _close_overdue(self, flow: Flow, now: float) -> None:
        """Remove the rules of streams that left a while ago."""
        closed = [stream for stream in flow.leaving if stream.until <= now]
        if closed:
            self._remove_rules(flow, closed)
            leaving = tuple(stream for stream in flow.leaving if stream not in closed)
            self._state.flows.change_streams(flow, flow.streams, flow.spare_ports, leaving)
            self._rates.save(flow)

    def _open_overdue(self, flow: Flow, now: float) -> None:
        """Take off streams of which the host has not said in time that they are open."""
        overdue = [stream for stream in flow.streams if stream.until <= now]
        if not overdue:
            return
        if self._recovery.is_moving(flow.id):
            for stream in overdue:
                stream.until = now + _BUSY_S
            return
        # It may be open all the same, so its rules stay until the host has heard.
        leaving = (*flow.leaving, *(_leaving(stream, now) for stream in overdue))
        self._take_off(flow, overdue, flow.spare_ports, leaving, "was not opened in time by its host", now)

    def _take_off_idle(self, flow: Flow, now: float) -> None:
        """Take off the streams that carry nothing, while one that does is open."""
        idle = flow.idle_streams()
        stays = any(stream.is_open for stream in flow.streams if stream not in idle)
        if not flow.is_active or self._recovery.is_moving(flow.id) or not stays:
            return
        leaving = (*flow.leaving, *(_leaving(stream, now) for stream in idle))
        self._take_off(flow, idle, flow.spare_ports, leaving, "", now)

    def _take_off(
        self,
        flow: Flow,
        gone: Collection[Stream],
        spare_ports: tuple[int, ...],
        leaving: tuple[Stream, ...],
        failure: str,
        now: float,
    ) -> None:
        """Let a flow go on without some of its streams, and tell its owner; with a failure, plan it again."""
        streams = [stream for stream in flow.streams if stream not in gone]
        if not streams:
            return
        self._state.flows.change_streams(flow, streams, spare_ports, leaving)
        if failure:
            flow.failed_streams += 1
            self._recovery.capacity_returned(now)
        ports = [stream.source_port for stream in gone]
        text = f"a stream of flow {flow.id} {failure or 'carried nothing'}: it is taken off"
        facts = flow_fields(flow) | {"source_ports": ports}
        self._outbox.tell(ClientEventKind.FLOW_STREAMS_REMOVED, text, facts, "warning" if failure else "info")
        self._rates.save(flow)
        self._outbox.put(Notify(flow.owner, AllocationChanged(self._state.view(flow, now))))

    def _remove_rules(self, flow: Flow, streams: Collection[Stream]) -> None:
        for stream in streams:
            for switch, rule in flow.stream_rules(stream, self._state.live.ports):
                self._remove(switch, rule)


def _leaving(stream: Stream, now: float) -> Stream:
    return stream.copied(state=StreamState.LEAVING, until=now + CLOSE_TIMEOUT_S)
