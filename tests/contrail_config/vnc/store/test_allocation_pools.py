"""Allocation pools of networks that others made: addresses are chosen from them, and requested ones anywhere."""

import contextlib

import pytest

from contrail_config.errors import ExhaustedError
from contrail_config.objects import VirtualNetwork
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_callers import Caller, Made
from tests.support.upstream_kube_manager import UpstreamKubeManager
from tests.support.virtual_networks import allocate_one, make_network

CIDR, GATEWAY = "10.5.0.0/24", "10.5.0.254"
POOLS = [{"start": "10.5.0.100", "end": "10.5.0.101"}, {"start": "10.5.0.50", "end": "10.5.0.50"}]
MOST = 9
POD_NETWORK = "k8s-default-pod-network"


async def permitted(open_vnc: OpenVnc) -> VncStore:
    """Opens a store that may use networks in the projects of two namespaces."""
    store = await open_vnc()

    async def exists(name: str) -> bool:
        return name in {"default", "teal"}

    store.use_namespaces(exists)
    return store


async def all_chosen(store: VncStore, network: VirtualNetwork) -> list[str]:
    """Allocates addresses until none is left."""
    found: list[str] = []
    with contextlib.suppress(ExhaustedError):
        while len(found) < MOST:
            found.append(await allocate_one(store, network))
    return found


async def shown(store: VncStore, made: Made) -> VirtualNetwork:
    domain, project, name = made.fq_name
    network = await store.find_network((domain, project, name))
    assert network is not None
    return network


async def test_addresses_in_a_network_of_others_are_chosen_from_its_pools(open_vnc: OpenVnc, caller: Caller) -> None:
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY, allocation_pools=POOLS)
    store = await permitted(open_vnc)
    network = await shown(store, made)
    assert await allocate_one(store, network, address="10.5.0.7") == "10.5.0.7"
    assert await all_chosen(store, network) == ["10.5.0.100", "10.5.0.101", "10.5.0.50"]


async def test_addresses_in_a_flat_subnet_ipam_of_others_are_chosen_from_its_pools(
    open_vnc: OpenVnc, caller: Caller
) -> None:
    manager = UpstreamKubeManager(caller)
    made = await manager.pod_network(CIDR, namespace="teal", allocation_pools=POOLS)
    store = await permitted(open_vnc)
    assert await all_chosen(store, await shown(store, made)) == ["10.5.0.100", "10.5.0.101", "10.5.0.50"]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_addresses_in_a_network_that_was_taken_over_are_chosen_from_its_pools(
    open_vnc: OpenVnc, caller: Caller, *, is_restarted: bool
) -> None:
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY, allocation_pools=POOLS)
    store = await open_vnc(take_over=True)
    network = await store.put_network(make_network(made.fq_name[-1], CIDR, nad="default/net-a"))
    assert network.uuid == made.uuid
    store = await open_vnc() if is_restarted else store
    assert await all_chosen(store, network) == ["10.5.0.100", "10.5.0.101", "10.5.0.50"]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_addresses_in_a_pod_network_that_was_taken_over_are_chosen_from_its_pools(
    open_vnc: OpenVnc, caller: Caller, *, is_restarted: bool
) -> None:
    made = await UpstreamKubeManager(caller).pod_network(CIDR, allocation_pools=POOLS)
    store = await open_vnc(take_over=True)
    network = await store.put_network(make_network(POD_NETWORK, CIDR))
    assert network.uuid == made.uuid
    store = await open_vnc() if is_restarted else store
    assert await all_chosen(store, network) == ["10.5.0.100", "10.5.0.101", "10.5.0.50"]
