"""Virtual machines, networks and addresses in the storage of a fake API server, read without its API."""

import msgspec

from contrail_config.kubernetes.bucket_namespaces import bucket_namespace
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS, GROUP, VERSION, VIRTUAL_MACHINES, VIRTUAL_NETWORKS
from contrail_config.kubernetes.node_buckets import NODE_BUCKETS, is_node_bucket
from contrail_config.objects import Pending, VirtualMachine, VirtualNetwork
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.kinds import NAMESPACES, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fake_apiserver.writes import create

VIRTUAL_MACHINE_KIND = Kind(
    GROUP, VERSION, VIRTUAL_MACHINES.kind, VIRTUAL_MACHINES.plural, custom=True, blind_updates=False
)
VIRTUAL_NETWORK_KIND = Kind(
    GROUP, VERSION, VIRTUAL_NETWORKS.kind, VIRTUAL_NETWORKS.plural, namespaced=False, custom=True, blind_updates=False
)
BLOCK_KIND = Kind(
    GROUP, VERSION, ADDRESS_BLOCKS.kind, ADDRESS_BLOCKS.plural, namespaced=False, custom=True, blind_updates=False
)


def add_node_buckets(server: FakeApiServer) -> None:
    """Creates the namespaces of virtual machines, as an earlier manager has done. Idempotent."""
    for name in NODE_BUCKETS:
        if ("", name) not in server.storage.objects(NAMESPACES):
            create(server.storage, NAMESPACES, "", bucket_namespace(name))


def virtual_machine_item(server: FakeApiServer, pod: str, *, namespace: str = "blue") -> Object:
    """The object of a pod's virtual machine."""
    (item,) = _items_of(server, pod, namespace)
    return item


def remove_virtual_machine(server: FakeApiServer, pod: str, *, namespace: str = "blue") -> None:
    """Deletes the object of a pod's virtual machine, as somebody else might do."""
    server.storage.remove(VIRTUAL_MACHINE_KIND, virtual_machine_item(server, pod, namespace=namespace))


def stored_virtual_machines(server: FakeApiServer) -> dict[str, VirtualMachine]:
    """The virtual machines in the namespaces of managers that are not pending, by uuid."""
    return {machine.uuid: machine for machine in _of_managers(server) if not machine.is_pending}


def stored_reasons(server: FakeApiServer) -> dict[str, Pending]:
    """Why pods wait, by uid."""
    return {machine.uuid: machine.pending for machine in _of_managers(server) if machine.pending is not None}


def virtual_machine_history(server: FakeApiServer, uuid: str) -> list[VirtualMachine]:
    """All states of a virtual machine in the server's history, oldest first, from its interfaces on."""
    records = server.storage.since(0, VIRTUAL_MACHINE_KIND)
    written = [_virtual_machine(record.after) for record in records if not record.deleted]
    return [machine for machine in written if machine.uuid == uuid and not machine.is_pending]


def stored_networks(server: FakeApiServer) -> dict[str, VirtualNetwork]:
    """All networks by uuid, including those not yet reconciled."""
    items = server.storage.objects(VIRTUAL_NETWORK_KIND).values()
    return {item["spec"]["uuid"]: msgspec.convert(item["spec"], VirtualNetwork) for item in items}


def allocated_addresses(server: FakeApiServer) -> dict[tuple[str, str], str]:
    """Owner of each allocated (network, address); fails if an address is in two blocks."""
    found = block_entries(server.storage.objects(BLOCK_KIND).values())
    assert len({(one.network, one.address) for one in found}) == len(found)
    return {(one.network, one.address): one.owner for one in found if one.held is None}


def _of_managers(server: FakeApiServer) -> list[VirtualMachine]:
    items = server.storage.objects(VIRTUAL_MACHINE_KIND).items()
    return [_virtual_machine(item) for (namespace, _), item in items if is_node_bucket(namespace)]


def _virtual_machine(item: Object) -> VirtualMachine:
    return msgspec.convert(item["spec"], VirtualMachine)


def _items_of(server: FakeApiServer, pod: str, namespace: str) -> list[Object]:
    items = server.storage.objects(VIRTUAL_MACHINE_KIND).values()
    return [item for item in items if (item["spec"]["namespace"], item["spec"]["pod"]) == (namespace, pod)]
