"""The second interfaces of terminals, for the protocols that use them."""

from __future__ import annotations

from experiments import protocols
from experiments.errors import ScenarioError
from experiments.model.plan import RunPlan
from topologies import second_interfaces
from topologies.second_interfaces import SecondLink, second_name


def with_second_interfaces(plan: RunPlan) -> tuple[RunPlan, dict[str, str]]:
    """Return a plan whose network has what its protocol needs, and whose further interface each new host is.

    Raises:
        ScenarioError: the scenario does not say where a terminal's second interface leads.
        TopologyError: it leads to no switch.
    """
    using = {name: part for name, part in plan.parts().items() if protocols.get(name).uses_second_interfaces}
    flows = (flow for part in using.values() for flow in part.case.flows.values())
    terminals = dict.fromkeys(host for flow in flows for host in (flow.src, flow.dst))
    if not terminals:
        return plan, {}
    known = plan.scenario.second_links
    missing = [host for host in terminals if host not in known]
    if missing:
        raise ScenarioError(
            plan.scenario.name,
            "second_links",
            f"{', '.join(using)} needs a second link of {', '.join(missing)}: write one for each, as "
            f'{missing[0]} = {{ switch = "…", rate_bps = 80e6, delay_us = 1000 }}',
        )
    links = {host: SecondLink(**known[host].model_dump()) for host in terminals}
    network = second_interfaces.with_second_interfaces(plan.network, links)
    return plan.model_copy(update={"network": network}), {second_name(host): host for host in terminals}
