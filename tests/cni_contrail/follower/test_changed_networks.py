"""Networks that differ between two desired states, and those that are then read from the kernel."""

from collections.abc import Collection, Sequence

import pytest

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.desired import (
    LocalPort,
    Masquerade,
    Network,
    RemoteEndpoint,
    Routed,
    RoutedNetwork,
    RoutedPort,
    Underlay,
)
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import INDEX_0, NodeOutcome
from cni_contrail.datapath.node_reconciler import NOTHING_ROUTED, NodeReconciler
from cni_contrail.follower.changed_networks import changed_networks
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.follower.kernel_program import KernelProgram
from cni_contrail.link.plan import Address
from cni_contrail.log import Log
from tests.support.fake_clock import FakeClock

RED, BLUE = Network(5, 1450, (Address("10.0.0.1", 24),), ()), Network(6, 1450, (), ())
UNDERLAY = Underlay(("192.0.2.1",), 4789, frozenset(("192.0.2.2",)))
STATE = DesiredState("v1", (RED, BLUE), Routed((), None), UNDERLAY, ())
PORT = LocalPort("tap1", "02:00:00:00:00:01", ("10.0.0.2",))
REMOTE = RemoteEndpoint("02:00:00:00:00:02", ("10.0.0.3",), "192.0.2.2")


def with_red(red: Network) -> DesiredState:
    """Returns a later state, in which this is the network RED."""
    return STATE._replace(version="v2", networks=(red, BLUE))


def test_equal_states_concern_nothing() -> None:
    assert changed_networks(STATE, STATE._replace(version="v2")) == frozenset()


@pytest.mark.parametrize(
    "red", [RED._replace(ports=(PORT,)), RED._replace(remotes=(REMOTE,)), RED._replace(is_complete=False)]
)
def test_pods_of_a_network_concern_it_alone(red: Network) -> None:
    assert changed_networks(STATE, with_red(red)) == frozenset({5})


def test_pods_and_blocks_of_index_0_concern_it_alone() -> None:
    routed = Routed((RoutedPort("tap0", "02:00:00:00:00:03", ("10.9.0.2",), ("10.9.0.1",)),), None)
    assert changed_networks(STATE, STATE._replace(routed=routed)) == frozenset({INDEX_0})
    blocks = UNDERLAY._replace(routed=RoutedNetwork(1, 1450, (), ("10.9.0.0/26",), ()))
    assert changed_networks(STATE, STATE._replace(underlay=blocks)) == frozenset({INDEX_0})
    more = UNDERLAY._replace(peers=UNDERLAY.peers | {"192.0.2.3"})
    assert changed_networks(STATE, STATE._replace(underlay=more)) == frozenset({INDEX_0})


@pytest.mark.parametrize(
    "after",
    [
        with_red(RED._replace(mtu=1400)),
        with_red(RED._replace(gateways=())),
        with_red(RED._replace(snat=True)),
        with_red(RED._replace(forwarding=True)),
        STATE._replace(networks=(RED,)),
        STATE._replace(networks=(RED, BLUE, RED._replace(vni=7))),
        STATE._replace(networks=(RED, RED)),
        STATE._replace(routed=Routed((), Masquerade(()))),
        STATE._replace(underlay=UNDERLAY._replace(addresses=("192.0.2.9",))),
        STATE._replace(underlay=UNDERLAY._replace(port=4790)),
        STATE._replace(fabric_subnets=("10.64.0.0/12",)),
    ],
)
def test_any_other_change_concerns_all(after: DesiredState) -> None:
    assert changed_networks(STATE, after) is None


class RecordedReconciler(NodeReconciler):
    """Touches no kernel, and records what it is asked for: networks, or None for all."""

    def __init__(self) -> None:
        super().__init__(Namespaces())
        self.rounds: list[set[int] | None] = []
        self.outcome = NodeOutcome.nothing()

    def reconcile(
        self,
        _desired: Sequence[Network],
        _routed: Routed = NOTHING_ROUTED,
        _underlay: Underlay | None = None,
        _fabric_subnets: Sequence[str] = (),
    ) -> NodeOutcome:
        self.rounds.append(None)
        return self.outcome

    def repair(
        self, _desired: Sequence[Network], _routed: Routed, _underlay: Underlay | None, networks: Collection[int]
    ) -> NodeOutcome:
        self.rounds.append(set(networks))
        return NodeOutcome.nothing()


def test_only_networks_that_changed_are_read_and_all_of_them_in_audits() -> None:
    reconciler, clock = RecordedReconciler(), FakeClock()
    program = KernelProgram(Endpoint("", "", 0), "test", reconciler, Log(), clock=clock)
    busy, later = with_red(RED._replace(ports=(PORT,))), with_red(RED._replace(mtu=1400))._replace(version="v3")
    for state in (STATE, busy, busy, later):
        program.program(state)
    assert reconciler.rounds == [None, {5}, None, None]


def test_networks_with_problems_are_read_again_with_others() -> None:
    reconciler = RecordedReconciler()
    reconciler.outcome = NodeOutcome.nothing()._replace(
        missing={6: frozenset(("tap9",))}, problems={INDEX_0: "no filter"}
    )
    program = KernelProgram(Endpoint("", "", 0), "test", reconciler, Log(), clock=FakeClock())
    program.program(STATE)
    program.program(with_red(RED._replace(ports=(PORT,))))
    assert reconciler.rounds == [None, {5, 6, INDEX_0}]


def test_all_networks_are_audited_in_time_while_new_states_keep_coming() -> None:
    reconciler, clock = RecordedReconciler(), FakeClock()
    program = KernelProgram(Endpoint("", "", 0), "test", reconciler, Log(), clock=clock)
    for number in range(8):
        program.program(with_red(RED._replace(ports=(PORT,) * (number % 2)))._replace(version=str(number)))
        clock.advance(10)
    assert reconciler.rounds == [None, {5}, {5}, None, {5}, {5}, None, {5}]
