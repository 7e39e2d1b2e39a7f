"""Networks with pods on many nodes become l3 by themselves, unless their NAD states its mode."""

import msgspec
import pytest

from contrail_config.objects import ForwardingMode, FqName, Subnet
from manager.controller.spread_networks import SpreadNetworks
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import NetworkDefinition
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager
from tests.support.virtual_networks import make_network

NAME: FqName = ("default-domain", "k8s-blue", "k8s-net-a-pod-network")


async def mode(running: RunningManager) -> ForwardingMode:
    await running.manager.nads.queue.idle()
    network = await running.network(NAME[2])
    assert network is not None
    return network.forwarding_mode


async def test_a_network_on_many_nodes_becomes_l3_with_one_event(running: RunningManager) -> None:
    nad, before, after = make_nad("net-a"), make_pod("before", networks="net-a"), make_pod("after", networks="net-a")
    await running.send_list(nad, before)
    assert (await running.vm(before)).interfaces[1].forwarding_mode is ForwardingMode.L2_L3
    running.manager.network_spread(NAME, 65)
    assert await mode(running) is ForwardingMode.L3
    running.manager.network_spread(NAME, 66)
    await running.send_list(nad, before, after)
    assert await mode(running) is ForwardingMode.L3
    assert (await running.vm(before)).interfaces[1].forwarding_mode is ForwardingMode.L2_L3, "it keeps its mode"
    assert (await running.vm(after)).interfaces[1].forwarding_mode is ForwardingMode.L3
    messages = [message for reason, message in await running.events_on(nad) if reason == "NetworkRouted"]
    assert len(messages) == 1
    assert "has pods on 65 nodes" in messages[0]


@pytest.mark.parametrize("stated", ["l2_l3", "L2_L3"])
async def test_a_network_whose_nad_states_its_mode_keeps_it(running: RunningManager, stated: str) -> None:
    await running.send_list(make_nad("net-a", forwarding_mode=stated))
    running.manager.network_spread(NAME, 65)
    assert await mode(running) is ForwardingMode.L2_L3


@pytest.mark.parametrize("engine", ["embedded"])  # a Contrail API server takes no subnet of one address
async def test_a_network_with_a_subnet_without_a_gateway_stays_as_it_is_with_one_warning(
    running: RunningManager,
) -> None:
    nad = make_nad("net-a", cidr="10.1.0.0/16,10.2.0.0/32")
    await running.send_list(nad)
    for nodes in (65, 66):
        running.manager.network_spread(NAME, nodes)
        assert await mode(running) is ForwardingMode.L2_L3
        await running.send_list(nad)
    messages = [message for reason, message in await running.events_on(nad) if reason == "NetworkNotRouted"]
    assert len(messages) == 1
    assert "has pods on 65 nodes" in messages[0]
    assert "subnet 10.2.0.0/32 has no gateway" in messages[0]
    assert "10.1.0.0/16" not in messages[0]


def test_a_network_is_warned_about_once_until_its_mode_is_stated() -> None:
    whole = make_network("net-a", "10.1.0.0/24")
    network = msgspec.structs.replace(whole, subnets=(Subnet("10.1.0.0/24", None),))
    definition = parse_nad(make_nad("net-a"), default_mtu=1500)
    assert isinstance(definition, NetworkDefinition)
    stated = msgspec.structs.replace(definition, forwarding_mode=ForwardingMode.L2_L3)
    spread = SpreadNetworks()
    assert spread.pop_unroutable(network) is None
    assert spread.add(whole, 65)
    assert spread.pop_unroutable(whole) is None
    assert not spread.add(network, 66)
    assert spread.pop_unroutable(network) == (65, ["10.1.0.0/24"])
    assert spread.pop_unroutable(network) is None
    assert spread.with_mode(network, stated, network) == network
    assert spread.add(network, 67)
    assert spread.pop_unroutable(network) == (67, ["10.1.0.0/24"])


@pytest.mark.parametrize("is_gone", [True, False], ids=["deleted", "mode stated"])
def test_what_is_noted_of_a_network_does_not_outlive_its_cause(*, is_gone: bool) -> None:
    network, definition = make_network("net-a", "10.1.0.0/24"), parse_nad(make_nad("net-a"), default_mtu=1500)
    assert isinstance(definition, NetworkDefinition)
    stated = msgspec.structs.replace(definition, forwarding_mode=ForwardingMode.L2_L3)
    spread = SpreadNetworks()
    assert spread.add(network, 65)
    assert spread.with_mode(network, definition if is_gone else stated, None if is_gone else network) == network
    assert spread.with_mode(network, definition, network) == network


async def test_an_annotation_takes_a_network_back(running: RunningManager) -> None:
    await running.send_list(make_nad("net-a"))
    running.manager.network_spread(NAME, 65)
    assert await mode(running) is ForwardingMode.L3
    await running.send_list(make_nad("net-a", forwarding_mode="l2_l3"))
    assert await mode(running) is ForwardingMode.L2_L3


async def test_a_network_that_does_not_exist_is_ignored(running: RunningManager) -> None:
    await running.send_list()
    running.manager.network_spread(NAME, 65)
    await running.manager.nads.queue.idle()
    assert await running.network(NAME[2]) is None
