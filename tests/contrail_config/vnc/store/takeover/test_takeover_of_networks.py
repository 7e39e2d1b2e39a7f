"""Take-over of networks that Contrail's kube-manager made."""

import msgspec
import pytest

from contrail_config.errors import ConflictError
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.takeover.servers import (
    GATEWAY,
    NAD,
    POD_CIDR,
    POD_GATEWAY,
    content,
    taken_over,
    wanted_network,
    wanted_pod_network,
)
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Made
from tests.support.upstream_kube_manager import UpstreamPod
from tests.support.virtual_networks import make_network


async def test_a_network_keeps_uuid_gateway_and_ipam(open_vnc: OpenVnc, network: Made, double: ContrailApi) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_network(mtu=1400, dns=("10.1.1.10",)))
    assert (stored.uuid, stored.nad, stored.dns) == (network.uuid, f"default/{NAD}", ("10.1.1.10",))
    assert [subnet.gateway for subnet in stored.subnets] == [GATEWAY]
    assert stored.vni == before[network.uuid][1]["virtual_network_network_id"]
    assert content(double) == before
    assert await store.networks() == [stored]


async def test_the_pod_network_keeps_uuid_and_flat_ipam(
    open_vnc: OpenVnc, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_pod_network())
    assert (stored.uuid, stored.subnets[0].gateway) == (pod_network.uuid, POD_GATEWAY)
    assert content(double) == before


async def test_a_network_that_was_taken_over_is_changed_in_its_annotation_only(
    open_vnc: OpenVnc, network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_network())
    assert (await store.put_network(msgspec.structs.replace(stored, mtu=1300))).mtu == 1300
    assert content(double) == before


async def test_a_manager_without_the_key_keeps_what_was_taken_over(
    open_vnc: OpenVnc, pod: UpstreamPod, pod_network: Made, double: ContrailApi
) -> None:
    store, machine = await taken_over(open_vnc)
    stored = await store.put_network(wanted_pod_network())
    before = content(double)
    again = await open_vnc()
    assert await again.virtual_machines() == [machine]
    assert await again.networks() == [stored]
    assert (await again.put_network(msgspec.structs.replace(stored, mtu=1300))).mtu == 1300
    assert content(double) == before


async def test_a_network_of_other_subnets_is_a_conflict(
    open_vnc: OpenVnc, network: Made, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    with pytest.raises(ConflictError, match=r"has the subnets 10\.32\.0\.0/24, not 10\.64\.0\.0/24"):
        await store.put_network(wanted_pod_network("10.64.0.0/24"))
    assert content(double) == before


async def test_subnets_of_a_network_that_was_taken_over_cannot_change(
    open_vnc: OpenVnc, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_pod_network())
    more = make_network("k8s-default-pod-network", POD_CIDR, "10.64.0.0/24")
    with pytest.raises(ConflictError, match="cannot change"):
        await store.put_network(msgspec.structs.replace(stored, subnets=more.subnets))
    assert content(double) == before


async def test_a_network_of_others_stays_a_conflict_for_a_manager_that_may_not_take_over(
    open_vnc: OpenVnc, network: Made
) -> None:
    store = await open_vnc()
    with pytest.raises(ConflictError, match=f"already exists with uuid {network.uuid}"):
        await store.put_network(wanted_network())
