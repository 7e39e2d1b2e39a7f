"""Model test of the port table: any sequence of requests, restarts and syncs matches plain dictionaries."""

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_api.errors import LinkStateError
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.instance import NAMESPACE, REMOTE, InstancePort
from agent_api.ports.port import Port
from agent_api.ports.stale import StalePortCleaner
from agent_api.ports.table import PortTable
from tests.support.stored_ports import container_port, instance_port

VM_NAMES = {f"aaaaaaaa-0000-4000-8000-00000000000{number}": f"k8s__default__p{number % 2}" for number in range(3)}
INTERFACES = [f"bbbbbbbb-0000-4000-8000-00000000000{number}" for number in range(4)]
CONTAINERS = ["", "container-1", "container-2"]
DEVICES = ["tap-there", "tap-gone"]

a_vm = st.sampled_from(list(VM_NAMES))
an_interface = st.sampled_from(INTERFACES)
some_interfaces = st.sets(an_interface, min_size=1)
a_container = st.sampled_from(CONTAINERS)
a_device = st.sampled_from(DEVICES)


class ModelOfPorts(RuleBasedStateMachine):
    """The model: a dictionary of ports by interface, and the set of those plugged since the last sync."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.root = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.loop = self.stack.enter_context(asyncio.Runner())
        self.model: dict[str, Port] = {}
        self.unplugged: list[str] = []
        self.restart()

    def teardown(self) -> None:
        self.stack.close()

    @rule()
    def restart(self) -> None:
        self.table = PortTable(PortDirectory(str(self.root)))
        self.table.on_unplugged(lambda ports: self.unplugged.extend(port.vmi_uuid for port in ports))
        self.loop.run(self.table.load())
        self.stale = StalePortCleaner(self.table, timeout=0, device_exists=lambda name: name == "tap-there")
        self.synced = False
        self.since: set[str] = set()

    @rule(vm_uuid=a_vm, vmi_uuids=some_interfaces, container=a_container, device=a_device)
    def plug_container(self, vm_uuid: str, vmi_uuids: set[str], container: str, device: str) -> None:
        self.plug(
            [
                container_port(
                    vmi_uuid, vm_uuid=vm_uuid, vm_id=container, vm_name=VM_NAMES[vm_uuid], host_ifname=device
                )
                for vmi_uuid in vmi_uuids
            ]
        )

    @rule(vm_uuid=a_vm, vmi_uuids=some_interfaces, kind=st.sampled_from([0, 1, 2]), device=a_device)
    def plug_instance(self, vm_uuid: str, vmi_uuids: set[str], kind: int, device: str) -> None:
        self.plug([instance_port(vmi_uuid, vm_uuid=vm_uuid, type=kind, system_name=device) for vmi_uuid in vmi_uuids])

    @rule(vm_uuid=a_vm, vmi_uuid=st.none() | an_interface, container=st.none() | a_container)
    def unplug(self, vm_uuid: str, vmi_uuid: str | None, container: str | None) -> None:
        self.unplugged.clear()
        self.loop.run(self.table.unplug(vm_uuid, vmi_uuid=vmi_uuid, container=container))
        self.forget(
            {
                port.vmi_uuid
                for port in self.model.values()
                if isinstance(port, ContainerPort)
                and port.vm_uuid == vm_uuid
                and vmi_uuid in (None, port.vmi_uuid)
                and container in (None, port.vm_id)
            }
        )

    @rule(vmi_uuid=an_interface)
    def unplug_instance(self, vmi_uuid: str) -> None:
        self.unplugged.clear()
        self.loop.run(self.table.unplug_instance(vmi_uuid))
        self.forget({vmi_uuid} if isinstance(self.model.get(vmi_uuid), InstancePort) else set())

    @rule(vmi_uuid=an_interface, state=st.sampled_from([0, 1]))
    def set_link_state(self, vmi_uuid: str, state: int) -> None:
        port = self.model.get(vmi_uuid)
        try:
            self.loop.run(self.table.set_link_state(vmi_uuid, 1 if state else 0))
        except LinkStateError:
            assert not isinstance(port, InstancePort) or port.kind != REMOTE
        else:
            assert isinstance(port, InstancePort)
            self.model[vmi_uuid] = msgspec.structs.replace(port, link_state=state)

    @rule()
    def sync(self) -> None:
        self.stale.sync()
        self.synced = True
        self.since = set()

    @rule()
    def clean_after_sync(self) -> None:
        if not self.synced:
            return
        self.unplugged.clear()
        self.loop.run(self.stale.clean_after_sync())
        self.synced = False
        self.forget({uuid for uuid, port in self.model.items() if uuid not in self.since and is_forgotten(port)})

    @invariant()
    def the_table_is_the_model(self) -> None:
        assert {port.vmi_uuid: port for port in self.table.all()} == self.model
        for vm_uuid in VM_NAMES:
            of_vm = {uuid: port for uuid, port in self.model.items() if port.vm_uuid == vm_uuid}
            assert self.table.by_virtual_machine(vm_uuid) == of_vm

    @invariant()
    def the_files_are_the_model(self) -> None:
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        assert found == {relative_path(port) for port in self.model.values()}
        directories = {path.name for path in (self.root / "vm").iterdir()}
        assert directories == {port.vm_name for port in self.model.values() if isinstance(port, ContainerPort)}

    def plug(self, ports: list[Port]) -> None:
        self.loop.run(self.table.plug(ports))
        for port in ports:
            self.model[port.vmi_uuid] = with_link_state_of(self.model.get(port.vmi_uuid), port)
            self.since.add(port.vmi_uuid)

    def forget(self, gone: set[str]) -> None:
        assert set(self.unplugged) == gone
        self.model = {uuid: port for uuid, port in self.model.items() if uuid not in gone}


def relative_path(port: Port) -> str:
    return os.path.join("vm", port.vm_name, port.vmi_uuid) if isinstance(port, ContainerPort) else port.vmi_uuid


def is_forgotten(port: Port) -> bool:
    """Returns whether a port not plugged since a sync is unplugged."""
    reposted = isinstance(port, InstancePort) and port.kind != NAMESPACE
    return reposted or port.host_ifname == "tap-gone"


def with_link_state_of(old: Port | None, port: Port) -> Port:
    """Returns the port; a remote port of the same VirtualMachine keeps its link state."""
    if isinstance(port, InstancePort) and isinstance(old, InstancePort) and port.kind == old.kind == REMOTE:
        state = old.link_state if port.vm_uuid == old.vm_uuid else port.link_state
        return msgspec.structs.replace(port, link_state=state)
    return port


TestModelOfPorts = ModelOfPorts.TestCase
TestModelOfPorts.settings = settings(max_examples=60, stateful_step_count=25)
