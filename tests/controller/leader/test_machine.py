"""Who leads: the state machine, case by case. That it holds together, the simulation shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.leader.machine import Action, ActionKind, LeaderMachine, Standing, Times
from controller.model.records import Holder

TIMES = Times(lease_s=2.0, drift=0.05, rest_s=4.0, blind_s=3.0)
OTHER = Holder(3, 33)


def kinds(actions: list[Action]) -> list[ActionKind]:
    return [action.kind for action in actions]


def connected(number: int = 3) -> LeaderMachine:
    machine = LeaderMachine(TIMES, switches=3)
    machine.holder_seen(OTHER, 0.0)
    machine.switches_seen(number, 0.0)
    return machine


def leading(asked_at: float = 10.0) -> LeaderMachine:
    machine = connected()
    assert kinds(machine.holder_seen(None, asked_at)) == [ActionKind.CLAIM]
    machine.lease_granted(7, asked_at)
    assert machine.holder_seen(Holder(5, 7), asked_at + 0.1) == [Action(ActionKind.LEAD, 5)]
    return machine


def test_a_follower_claims_once_the_key_is_free_and_leads_once_the_watch_says_so() -> None:
    machine = connected()
    assert machine.tick(5.0) == []
    assert machine.holder_seen(None, 5.0) == [Action(ActionKind.CLAIM)]
    assert not machine.may_decide(5.0)
    machine.lease_granted(7, 5.0)
    assert machine.holder_seen(Holder(4, 8), 5.1) == []  # another was faster
    assert machine.standing is Standing.FOLLOWER
    machine = leading()
    assert machine.standing is Standing.LEADER and machine.epoch == 5
    assert machine.may_decide(10.1)


def test_a_claim_that_is_not_answered_is_made_again() -> None:
    machine = connected()
    machine.holder_seen(None, 5.0)
    assert machine.tick(6.0) == [] and machine.next_deadline() is None, "one claim is under way"
    machine.claim_refused()
    assert kinds(machine.tick(6.0)) == [ActionKind.CLAIM]


def test_only_the_lease_of_its_key_lets_a_leader_decide() -> None:
    """A claim that was repeated is granted another lease, before or after the key is there."""
    machine = connected()
    machine.holder_seen(None, 10.0)
    machine.lease_granted(7, 10.0)
    machine.claim_refused()
    assert kinds(machine.tick(10.3)) == [ActionKind.CLAIM]
    machine.lease_granted(8, 10.3)
    assert machine.holder_seen(Holder(5, 7), 10.4) == [Action(ActionKind.LEAD, 5)]
    machine.lease_granted(9, 11.5)
    machine.lease_renewed(9, 11.6, 11.6)
    assert machine.lease_ended(8) == [] and machine.lease == 7
    assert machine.may_decide(11.8) and not machine.may_decide(11.9)


def test_a_leader_stops_before_its_lease_can_have_ended() -> None:
    machine = leading(asked_at=10.0)
    assert kinds(machine.tick(10.6)) == [ActionKind.RENEW]
    assert machine.lease_renewed(7, asked_at=10.6, now=10.7) == []
    assert machine.may_decide(12.4) and not machine.may_decide(12.5)
    # An answer that comes too late does not count: others may have been refused by then.
    assert kinds(machine.lease_renewed(7, asked_at=12.0, now=12.6)) == [ActionKind.STOP]
    assert machine.standing is Standing.FENCED and machine.next_deadline() is None


@pytest.mark.parametrize("what", ["another", "gone", "refused", "lease", "time"])
def test_who_is_deposed_begins_again_from_the_store(what: str) -> None:
    machine = leading()
    deposing: dict[str, Callable[[], list[Action]]] = {
        "another": lambda: machine.holder_seen(Holder(9, 9), 11.0),
        "gone": lambda: machine.holder_seen(None, 11.0),
        "refused": machine.write_refused,
        "lease": lambda: machine.lease_ended(7),
        "time": lambda: machine.tick(20.0),
    }
    actions = deposing[what]()
    assert kinds(actions) == [ActionKind.STOP] and actions[0].reason
    assert not machine.may_decide(11.0) and machine.epoch == 0
    assert machine.tick(30.0) == [] and machine.holder_seen(None, 30.0) == []
    assert kinds(machine.begun_again(None, 31.0)) == [ActionKind.CLAIM]


def test_ones_own_key_of_before_goes_first() -> None:
    """A new epoch is needed: nobody knows which of the old one's writes have been applied."""
    machine = leading()
    machine.write_refused()
    assert machine.begun_again(Holder(5, 7), 11.0) == [Action(ActionKind.DEPOSE, 5)]
    assert machine.standing is Standing.FOLLOWER


def test_who_is_connected_to_too_few_switches_does_not_lead() -> None:
    machine = connected(1)
    assert machine.holder_seen(None, 5.0) == [] and machine.leader_gone(3) == []
    assert kinds(machine.switches_seen(2, 6.0)) == [ActionKind.CLAIM]
    machine = leading()
    machine.lease_renewed(7, asked_at=14.0, now=11.5)
    assert machine.switches_seen(1, 11.0) == []
    assert ActionKind.STOP not in kinds(machine.tick(13.0))
    assert kinds(machine.tick(14.1)) == [ActionKind.STOP, ActionKind.DEPOSE]


def test_a_leader_whose_process_has_ended_is_deposed_at_once() -> None:
    machine = connected()
    assert machine.leader_gone(2) == [], "that one is known to be none any more"
    assert machine.leader_gone(3) == [Action(ActionKind.DEPOSE, 3)]
    assert leading().leader_gone(5) == []


def test_who_steps_down_leaves_it_to_others_for_a_while() -> None:
    machine = leading()
    assert kinds(machine.step_down(11.0)) == [ActionKind.STOP, ActionKind.DEPOSE]
    assert machine.begun_again(None, 11.1) == []
    assert machine.next_deadline() == 11.0 + TIMES.rest_s
    assert kinds(machine.tick(15.0)) == [ActionKind.CLAIM]
    assert connected().step_down(11.0) == []
