"""The plugin on a node with a Contrail vrouter, whose agent knows what a manager wrote to the Contrail API server."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.objects import VirtualMachine, interface_uuid
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.contrail_vrouter import pods_of
from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent
from tests.support.virtual_machines import NODE, make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network, request

CIDRS = (("10.32.0.0/24",), ("10.1.0.0/24", "fd00:1::/64"), ("fd00:2::/64",))
NADS = (None, "default/left", "default/right")


@pytest.fixture
def pod(sandbox: Netns) -> PodSandbox:
    return PodSandbox(sandbox.path, namespace="default")


@pytest.fixture
async def store(contrail: ContrailApi) -> AsyncIterator[VncStore]:
    async with connect(VncAccess((contrail.url,))) as client:
        store = await VncStore.open(client, cluster="k8s")
        yield store
        await store.close()


@pytest.fixture
async def router(caller: Caller) -> Made:
    name = ["default-global-system-config", NODE]
    return await caller.create("virtual-router", fq_name=name, parent_type="global-system-config")


async def assign(store: VncStore, pod: PodSandbox) -> VirtualMachine:
    """Gives a pod an interface in each network, as a manager does, and returns them."""
    interfaces = []
    for index, (cidrs, nad) in enumerate(zip(CIDRS, NADS, strict=True)):
        network = await store.put_network(make_network(f"net-{index}", *cidrs))
        owner = interface_uuid(pod.uid, index)
        families = [6 if ":" in cidr else 4 for cidr in cidrs]
        addresses = await store.allocate([request(network, owner, family=family, node=NODE) for family in families])
        made = interface_in(network, owner, *addresses)
        label = {} if nad is None else {"nad": nad, "config_name": nad.rpartition("/")[2], "attachment": f"net{index}"}
        interfaces.append(msgspec.structs.replace(made, **label))
    machine = make_virtual_machine(pod.name, uid=pod.uid, node=NODE, interfaces=tuple(interfaces))
    await store.put_virtual_machine(machine)
    return machine


async def test_a_pod_gets_what_the_manager_assigned(
    store: VncStore,
    contrail: ContrailApi,
    router: Made,
    vrouter_agent: ScriptedAgent,
    plugin: Plugin,
    sandbox: Netns,
    pod: PodSandbox,
) -> None:
    machine = await assign(store, pod)
    vrouter_agent.virtual_machines |= pods_of(contrail.database, router.uuid)

    def without_ipv6(seen: ReceivedRequest) -> Reply | None:
        """It learns of some addresses later."""
        if seen.method != "GET" or not seen.path.startswith("/vm/") or len(vrouter_agent.received("GET", "/vm/")) > 2:
            return None
        ports = vrouter_agent.default_reply(seen).document
        return Reply(200, [{key: value for key, value in port.items() if not key.startswith("v6-")} for port in ports])

    vrouter_agent.before(without_ipv6)
    (await asyncio.to_thread(plugin.add, pod, settings=LONG_POLL)).succeeded()
    for index, interface in enumerate(machine.interfaces):
        shown = sandbox.ip("address", "show", "dev", f"eth{index}")
        assert f" {interface.mac} " in shown
        for address in interface.addresses:
            assert f" {address.address}/{address.prefix_length} " in shown
    assert vrouter_agent.ports.keys() == {interface.uuid for interface in machine.interfaces}
    (await asyncio.to_thread(plugin.delete, pod)).succeeded()
    assert vrouter_agent.ports == {}


async def test_a_pod_that_is_deleted_is_known_no_more(
    store: VncStore, contrail: ContrailApi, router: Made, pod: PodSandbox
) -> None:
    await assign(store, pod)
    await store.delete_virtual_machine(pod.uid)
    assert pods_of(contrail.database, router.uuid) == {}
