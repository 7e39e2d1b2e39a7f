"""VirtualRouters and RouterLinks: which virtual router is a node's, and that its pods are linked to it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.reference import Reference
from contrail_config.vnc.virtual_routers import VirtualRouters
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.recorded_reflector import eventually
from tests.support.virtual_machines import NODE
from tests.support.virtual_networks import make_network, start_pod

UID = "0a000000-0000-4000-8000-000000000001"


async def make_router(caller: Caller, name: str, address: str | None = None) -> Made:
    stated: dict[str, Any] = {} if address is None else {"virtual_router_ip_address": address}
    fq_name = ["default-global-system-config", name]
    return await caller.create("virtual-router", fq_name=fq_name, parent_type="global-system-config", **stated)


class Nodes:
    """The addresses of nodes; `asked` are the nodes that were looked up."""

    def __init__(self, **addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, node: str) -> Sequence[str]:
        self.asked.append(node)
        return self.addresses.get(node, ())


def linked(double: ContrailApi, router: Made) -> list[str]:
    return list(double.database.objects[router.uuid].references.get("virtual-machine", {}))


async def test_a_router_of_the_nodes_name_is_found_first(vnc: VncClient, caller: Caller) -> None:
    await make_router(caller, "vrouter-7", "192.0.2.1")
    named = await make_router(caller, "worker", "192.0.2.99")
    nodes = Nodes(worker=["192.0.2.1"])
    assert await VirtualRouters(vnc, nodes).find("worker") == named.uuid
    assert nodes.asked == []


@pytest.mark.parametrize(
    ("stated", "of_node"),
    [("192.0.2.1", ["192.0.2.1"]), ("2001:DB8:0::1", ["192.0.2.1", "2001:db8::1"])],
)
async def test_a_router_of_another_name_is_found_by_an_address_of_the_node(
    vnc: VncClient, caller: Caller, stated: str, of_node: list[str]
) -> None:
    await make_router(caller, "other", "192.0.2.7")
    await make_router(caller, "malformed", "nonsense")
    router = await make_router(caller, "vrouter-7", stated)
    assert await VirtualRouters(vnc, Nodes(worker=of_node)).find("worker") == router.uuid


async def test_a_router_whose_name_differs_in_case_is_found(vnc: VncClient, caller: Caller) -> None:
    router = await make_router(caller, "Worker.Example")
    assert await VirtualRouters(vnc, Nodes()).find("worker.example") == router.uuid


async def test_two_routers_with_the_address_of_a_node_are_named_and_not_used(
    vnc: VncClient, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    await make_router(caller, "one", "192.0.2.1")
    await make_router(caller, "other", "192.0.2.1")
    assert await VirtualRouters(vnc, Nodes(worker=["192.0.2.1"])).find("worker") is None
    assert "2 virtual routers are like it, none is used: one, other" in caplog.text


async def test_many_nodes_without_router_are_looked_for_by_one_list(vnc: VncClient, double: ContrailApi) -> None:
    routers, names = VirtualRouters(vnc, Nodes()), [f"node-{number}" for number in range(20)]
    await asyncio.gather(*(routers.find(name) for name in names))
    del double.requests[:]
    routers.directory.max_age = 3600.0
    for _ in range(3):
        assert set(await asyncio.gather(*(routers.find(name) for name in names))) == {None}
    assert len(double.requests) <= 1


async def test_a_router_that_was_made_again_gets_the_pods_from_then_on(
    vnc: VncClient, caller: Caller, double: ContrailApi
) -> None:
    routers = VirtualRouters(vnc)
    before = await make_router(caller, "worker")
    machine = await caller.virtual_machine()
    assert await routers.find("worker") == before.uuid
    await caller.delete(before)
    after = await make_router(caller, "worker")
    await routers.link("worker", Reference("virtual-machine", machine.uuid, tuple(machine.fq_name)))
    assert linked(double, after) == [machine.uuid]


async def test_pods_that_were_written_before_the_router_was_made_are_linked(
    open_vnc: OpenVnc, caller: Caller, double: ContrailApi
) -> None:
    store = await open_vnc()
    await start_pod(store, [await store.put_network(make_network())], uid=UID)
    store.router_links.interval = store.routers.directory.max_age = 0.01
    maintenance = asyncio.create_task(store.maintain())
    router = await make_router(caller, NODE)
    await eventually(lambda: linked(double, router) == [UID])
    maintenance.cancel()
    await asyncio.wait([maintenance])


async def test_a_link_that_an_earlier_manager_could_not_make_is_made_by_the_next(
    open_vnc: OpenVnc, caller: Caller, double: ContrailApi
) -> None:
    first = await open_vnc()
    await start_pod(first, [await first.put_network(make_network())], uid=UID)
    await first.close()
    router = await make_router(caller, NODE)
    await (await open_vnc()).router_links.add_missing()
    assert linked(double, router) == [UID]


async def test_complete_links_are_not_written_again(open_vnc: OpenVnc, double: ContrailApi, router: Made) -> None:
    store = await open_vnc()
    await start_pod(store, [await store.put_network(make_network())], uid=UID)
    assert linked(double, router) == [UID]
    del double.requests[:]
    await store.router_links.add_missing()
    assert not any("ref-update" in request for request in double.requests)
