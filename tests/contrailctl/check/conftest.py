"""A store with the network blue and a pod on each of two nodes, as it should be."""

from datetime import UTC, datetime

import msgspec
import pytest

from contrail_config.kubernetes.expected_slices import StoredObjects, expected_slices
from contrail_config.kubernetes.kinds import ContrailNodeObject, FullMetadata, NodeReport
from contrail_config.objects import InterfaceAddress, VirtualMachine, VirtualNetwork, interface_uuid
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network, new_owner

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    """Five minutes after the nodes have reported."""
    return NOW


@pytest.fixture
def blue() -> VirtualNetwork:
    return make_network("blue", "10.1.0.0/24", vni=7)


@pytest.fixture
def stored(blue: VirtualNetwork) -> StoredObjects:
    tunnels: dict[str, tuple[str, ...]] = {"node-a": ("192.0.2.1",), "node-b": ("192.0.2.2",)}
    machines = (_pod(blue, 3, "node-a"), _pod(blue, 4, "node-b"))
    reports = {node: _report(node) for node in tunnels}
    found = StoredObjects((blue,), machines, (), tunnels, {}, {}, reports)
    return found._replace(slices=expected_slices(found))


def _pod(network: VirtualNetwork, number: int, node: str) -> VirtualMachine:
    uid = new_owner()
    interface = interface_in(network, interface_uuid(uid, 0), InterfaceAddress(f"10.1.0.{number}", 24))
    mac = f"02:00:00:00:00:0{number}"
    interface = msgspec.structs.replace(interface, vni=network.vni, mac=mac)
    return make_virtual_machine(f"pod-{number}", uid=uid, node=node, interfaces=(interface,))


def _report(node: str) -> ContrailNodeObject:
    return ContrailNodeObject(FullMetadata(name=node), NodeReport("2026-01-01T00:00:00Z", "agent"))
