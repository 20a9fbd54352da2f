"""The pure parts of the live engine: routes, samples, validity, evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import topologies
from controller.api.schema import parse
from controller.model.rules import Output, ToGroup, eth_type_of
from controller.model.settings import Settings
from experiments import protocols
from experiments.analysis.logs import Window
from experiments.analysis.validity import CpuMeter, why_invalid
from experiments.engines.live.program_times import ProgramMeter
from experiments.engines.live.routes import DEFAULT_TABLE, default_path
from experiments.engines.live.sampling import LinkSampler
from experiments.engines.live.socket_state import parse_sockets
from experiments.errors import UnknownName
from experiments.model import scenario, settings
from experiments.model.results import LinkResult, ProgramTimes
from experiments.protocols import FlowPlan
from experiments.protocols.mptcp_sdn import MptcpSdn
from experiments.protocols.ppfs import Ppfs, shares_of
from tests.fakes.openflow_table import ControlledNetwork, Packet
from topologies.model import IpVersion
from topologies.wires import DirectionCounters, Lateness

SECOND = 1_000_000_000
LIVE = settings.Live()


def rules_of(net: ControlledNetwork) -> Callable[[str], str]:
    """Return what `ovs-ofctl dump-flows` would print of the default routes of a switch."""

    def dump(switch: str) -> str:
        table = net.switches.tables[net.switches.network.datapath_id(switch)]
        lines = ["OFPST_FLOW reply"]
        for rule in table.rules.values():
            to = rule.action
            if rule.table == DEFAULT_TABLE and isinstance(to, Output | ToGroup):
                target = f"output:{to.port}" if isinstance(to, Output) else f"group:{to.group}"
                ip = rule.match.destination_ip or ""
                match = f"priority={rule.priority},{'ipv6,ipv6' if ':' in ip else 'ip,nw'}_dst={ip}"
                lines.append(f" cookie=0x1, {match} actions=set_field:{to.destination_mac}->eth_dst,{target}")
        return "\n".join(lines)

    return dump


@pytest.mark.parametrize("spec", ["line:3", "butterfly", "line:60", "fat-tree:4"])
@pytest.mark.parametrize(("version", "fast_failover"), [(4, True), (6, True), (4, False)])
def test_a_route_is_read_from_the_rules(spec: str, version: IpVersion, fast_failover: bool) -> None:
    network = topologies.load(spec)
    net = ControlledNetwork.brought_up(network, Settings(fast_failover=fast_failover))
    src, dst = network.hosts[0], network.hosts[-1]
    packet = Packet(eth_type_of(ip := network.host_ip(dst, version)), 17, network.host_ip(src, version), ip)
    assert default_path(network, src, dst, rules_of(net), version) is None, "nobody has sent"
    taken = net.switches.path(packet, src)
    assert default_path(network, src, dst, rules_of(net), version) == list(taken)


def test_a_loop_in_the_rules_is_no_route() -> None:
    network = topologies.load("line:2")
    src, dst = network.hosts
    ports = {(arc.tail, arc.head): arc.tail_port for arc in network.arcs()}
    a, b = network.switches
    line = f" ip,nw_dst={network.host_ip(dst)} actions=output:"
    rules = {a: f"{line}{ports[a, b]}", b: f"{line}{ports[b, a]}"}
    assert default_path(network, src, dst, rules.__getitem__) is None


def counters(
    carried: int,
    packets: int,
    drops: int = 0,
    late_us: float | None = 10.0,
    queue_drops: int = 0,
    lost: int = 0,
) -> list[DirectionCounters]:
    network = topologies.load("line:2")
    lateness = None if late_us is None else Lateness(late_us, late_us, 2 * late_us, 3 * late_us)
    return [
        DirectionCounters(
            link=arc.link,
            tail=arc.tail,
            head=arc.head,
            packets=packets,
            bytes=carried,
            dropped=queue_drops,
            lost=lost,
            dropped_by_machine=drops,
            queued_packets=0,
            queued_bytes=0,
            lateness=lateness,
        )
        for arc in network.arcs()
    ]


def test_samples_become_utilisation_and_lateness() -> None:
    network = topologies.load("line:2", overrides={"links.s1-s2.rate_bps": 8000.0})
    readings = [counters(0, 0), counters(500, 1, late_us=10.0), counters(1000, 4, drops=2, late_us=30.0)]
    sampler = LinkSampler(lambda: readings.pop(0))
    for second in range(3):
        sampler.sample(second * SECOND)
    result = {link.link: link for link in sampler.results(network, Window(0, 2.0, interval_s=1.0))}["s1->s2"]
    assert result.utilisation == pytest.approx(0.5)
    assert result.series is not None
    assert result.series.utilisation == pytest.approx([0.5, 0.5])
    assert result.lateness_mean_us == pytest.approx((10 * 1 + 30 * 3) / 4)
    assert result.lateness_p99_us == pytest.approx((20 * 1 + 60 * 3) / 4)
    assert result.lateness_max_us == pytest.approx(90)
    places = {f"on link {arc.tail}->{arc.head}" for arc in network.arcs()}
    assert sampler.machine_drops() == dict.fromkeys(places, 2)


def test_packets_dropped_in_the_warm_up_or_the_drain_do_not_count() -> None:
    network = topologies.load("line:2")
    drops = [(0, 0), (7, 1), (7, 3), (12, 3), (15, 9)]
    readings = [counters(0, 0, queue_drops=queue, lost=lost) for queue, lost in drops]
    sampler = LinkSampler(lambda: readings.pop(0))
    for second in range(5):
        sampler.sample(second * SECOND)
    links = sampler.results(network, Window(SECOND, 2.0))
    assert {link.packets_dropped for link in links} == {5 + 2}


def test_lateness_is_none_where_it_is_not_measured() -> None:
    network = topologies.load("line:2")
    readings = [counters(0, 0, late_us=None), counters(10, 1, late_us=None)]
    sampler = LinkSampler(lambda: readings.pop(0))
    sampler.sample(0)
    sampler.sample(SECOND)
    for link in sampler.results(network, Window(0, 1.0)):
        assert link.lateness_mean_us is link.lateness_p99_us is link.lateness_max_us is None
    assert why_invalid(LIVE, None, [], sampler.results(network, Window(0, 1.0)), {}) == []
    assert sampler.machine_drops() == {}


def test_a_programs_times_are_those_of_its_busiest_thread(tmp_path: Path) -> None:
    def schedstat(thread: int, ran_ms: int, waited_ms: int, times: int) -> None:
        folder = tmp_path / "7" / "task" / str(thread)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"{ran_ms}000000 {waited_ms}000000 {times}\n")

    schedstat(7, 100, 5, 100)
    schedstat(8, 50, 1, 10)
    meter = ProgramMeter({"the sink in T2": 7, "gone": 9}, tmp_path)
    schedstat(7, 110, 6, 1100)
    schedstat(8, 250, 41, 30)
    schedstat(9, 1, 0, 1)  # begun since
    [times] = meter.read(duration_s=2.0)
    assert times.program == "the sink in T2"
    assert (times.ran, times.waited, times.wait_mean_us) == pytest.approx((0.1, 0.02, 2000))


def test_a_program_without_a_processor_makes_a_run_invalid() -> None:
    fine = ProgramTimes(program="the source in T0", ran=0.7, waited=0.27, wait_mean_us=200)
    waiting = ProgramTimes(program="the sink in T2", ran=0.1, waited=0.2, wait_mean_us=1500)
    behind = ProgramTimes(program="Open vSwitch", ran=0.7, waited=0.29, wait_mean_us=2500)
    assert why_invalid(LIVE, 0.9, [fine], [], {}) == []
    assert why_invalid(LIVE, 0.9, [fine, waiting, behind], [], {}) == [
        "Open vSwitch (and 1 more) waited 2.5 ms on average for a processor, above 0.25 ms",
        "Open vSwitch ran or waited for a processor 99.0% of the time, above 98.5%: packets wait in front of "
        "it",
    ]


def link_result(p99_us: float | None, max_us: float | None) -> LinkResult:
    return LinkResult(
        link="a->b",
        capacity_bps=1e6,
        utilisation=0.5,
        packets_dropped=0,
        lateness_mean_us=p99_us,
        lateness_p99_us=p99_us,
        lateness_max_us=max_us,
    )


@pytest.mark.parametrize(
    ("busy", "p99_us", "max_us", "lost", "reason"),
    [
        (0.99, 10.0, 20.0, {}, "99% of the processor was busy"),
        (0.50, 3000.0, 4000.0, {}, "link a->b released 99 % of its packets up to 3.0 ms late"),
        (0.50, 10.0, 2e5, {}, "link a->b released all its packets up to 200.0 ms late"),
        (
            0.50,
            None,
            None,
            {"at port 1 of s1": 2, "at port 2 of s1": 3},
            "5 packets were lost because the machine read too late: 3 at port 2 of s1, 2 at port 1 of s1",
        ),
        (
            0.50,
            None,
            None,
            {f"at port {port} of s1": 1 for port in range(7)},
            "1 at port 4 of s1, the others at 2 more places",
        ),
    ],
)
def test_a_machine_that_was_too_slow_is_named(
    busy: float, p99_us: float | None, max_us: float | None, lost: dict[str, int], reason: str
) -> None:
    reasons = why_invalid(LIVE, busy, [], [link_result(10.0, 20.0), link_result(p99_us, max_us)], lost)
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_a_machine_that_kept_up_is_valid() -> None:
    assert why_invalid(LIVE, 0.8, [], [link_result(50.0, 4000.0)], {}) == []


def test_cpu_meter_counts_what_is_not_idle(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1\n")
    meter = CpuMeter(stat)
    stat.write_text("cpu  10 5 5 60 10 4 3 3 10 0\n")  # guest time is part of user time
    assert meter.busy() == pytest.approx(30 / 100)
    assert meter.busy() is None


def plan_of(case_name: str, flow_name: str) -> FlowPlan:
    butterfly = scenario.load("butterfly")
    case = butterfly.case(case_name)
    return FlowPlan(flow_name, butterfly, case, case.flows[flow_name], 1, "mstcp", "10.255.0.1:50051")


def test_protocols_connect_as_they_should() -> None:
    assert protocols.get("ospf").connection(plan_of("1", "1")) == {}
    controller = {"controller": "10.255.0.1:50051", "scheduler": "stochastic"}
    computed = protocols.get("mstcp").connection(plan_of("1", "1"))
    assert computed == {**controller, "objective": "even_split"}
    plan = plan_of("2", "1")
    given = replace(plan, case=plan.case.model_copy(update={"allocation": "paper"}))
    connection = protocols.get("mstcp").connection(given)
    assert "objective" not in connection
    assert [rate_bps for _, rate_bps in connection["paths"]] == [4.475e6, 4.475e6]
    with pytest.raises(UnknownName, match="Did you mean mptcp"):
        protocols.get("mptpc")


def test_a_split_flow_is_asked_for_as_the_case_says() -> None:
    protocol = protocols.get("ppfs")
    assert isinstance(protocol, Ppfs)
    computed = protocol.request(plan_of("1", "1"), 5001)
    assert computed == {
        "source": "T0",
        "destination": "T2",
        "destination_port": 5001,
        "ip_version": 4,
        "packet_bytes": 590,
        "segment_overhead_bytes": 54,
        "lease_s": 86400.0,
        "objective": "even_split",
        "rate_bps": 8.5e6,
        "splitting": "packets",
        "ack_path": "shortest",
    }
    plan = plan_of("2", "1")
    given_case = plan.case.model_copy(update={"allocation": "paper"})
    given = protocol.request(replace(plan, case=given_case), 5001)
    assert [path["rate_bps"] for path in given["paths"]] == [4.54e6, 4.54e6]
    assert "objective" not in given


def test_every_request_is_one_that_the_controller_takes() -> None:
    for name in ("ppfs", "ppfs-group", "mptcp-sdn"):
        protocol = protocols.get(name)
        assert isinstance(protocol, (Ppfs, MptcpSdn))
        parse(json.loads(json.dumps(protocol.request(plan_of("2", "2"), 5002))))


def test_sockets_are_read_from_what_ss_prints() -> None:
    text = (
        "ESTAB 0 8 10.0.0.1:61001 10.0.0.3:5001 timer:(on,200ms,0) ts sack cubic rto:204 rtt:33.7/0.5 "
        "mss:536 cwnd:20 bytes_sent:900 retrans:0/7 reord_seen:3 tcp-ulp-mptcp flags:Jj token:0\n"
        "ESTAB 0 0 [fd00::1]:61000 [fd00::3]:5001 reno wscale:2,2 cwnd:9\n"
        "SYN-SENT 0 1 10.0.0.1:61002 10.0.0.3:5001 timer:(on,1sec,0) cubic rto:1000 tcp-ulp-mptcp flags:j\n"
    )
    first, second, third = parse_sockets(text)
    assert [state.is_open for state in (first, second, third)] == [True, True, False]
    assert (first.source_ip, second.source_ip) == ("fd00::1", "10.0.0.1")
    assert (first.source_port, first.congestion_control, first.is_subflow) == (61000, "reno", False)
    assert first.options == ()
    assert (second.congestion_control, second.is_subflow) == ("cubic", True)
    assert second.options == ("ts", "sack")
    assert (first.rtt_s, second.rtt_s) == (None, 0.0337)
    assert second.counts == {"bytes_sent": 900, "mss": 536, "cwnd": 20, "retrans": 7, "reord_seen": 3}


def test_shares_of_nothing_are_unknown() -> None:
    assert shares_of([0, 0]) is None
    assert shares_of([3, 1]) == [0.75, 0.25]
