"""Any sequence of POST and DELETE leaves table and files as a plain dictionary has them, over restarts too."""

import asyncio
import contextlib
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.table import PortTable
from tests.support.machines import SAMPLE_VN

MACHINES = {f"aaaaaaaa-0000-4000-8000-00000000000{number}": f"k8s__default__p{number % 2}" for number in range(3)}
INTERFACES = [f"bbbbbbbb-0000-4000-8000-00000000000{number}" for number in range(4)]
CONTAINERS = ["", "container-1", "container-2"]

a_machine = st.sampled_from(list(MACHINES))
an_interface = st.sampled_from(INTERFACES)
a_container = st.sampled_from(CONTAINERS)


class ModelOfPorts(RuleBasedStateMachine):
    """The model is one dictionary of ports by interface."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.root = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.loop = self.stack.enter_context(asyncio.Runner())
        self.model: dict[str, ContainerPort] = {}
        self.freed: list[str] = []
        self.moment = 0
        self.restart()

    def teardown(self) -> None:
        self.stack.close()

    @rule()
    def restart(self) -> None:
        self.table = PortTable(PortDirectory(str(self.root)))
        self.table.on_unplugged(self.freed.extend)
        self.loop.run(self.table.load())

    @rule(vm_uuid=a_machine, vmi_uuids=st.sets(an_interface, min_size=1), container=a_container)
    def plug(self, vm_uuid: str, vmi_uuids: set[str], container: str) -> None:
        self.moment += 1
        ports = [
            ContainerPort(
                vm_uuid=vm_uuid,
                vn_uuid=SAMPLE_VN,
                vmi_uuid=vmi_uuid,
                vm_id=container,
                vm_name=MACHINES[vm_uuid],
                host_ifname="tap0",
                time=str(self.moment),
            )
            for vmi_uuid in vmi_uuids
        ]
        self.loop.run(self.table.plug(ports))
        self.model |= {port.vmi_uuid: port for port in ports}

    @rule(vm_uuid=a_machine, vmi_uuid=st.none() | an_interface, container=st.none() | a_container)
    def unplug(self, vm_uuid: str, vmi_uuid: str | None, container: str | None) -> None:
        self.freed.clear()
        self.loop.run(self.table.unplug(vm_uuid, vmi_uuid=vmi_uuid, container=container))
        gone = {
            port.vmi_uuid
            for port in self.model.values()
            if port.vm_uuid == vm_uuid and vmi_uuid in (None, port.vmi_uuid) and container in (None, port.vm_id)
        }
        assert set(self.freed) == gone
        self.model = {uuid: port for uuid, port in self.model.items() if uuid not in gone}

    @invariant()
    def the_table_is_the_model(self) -> None:
        assert {port.vmi_uuid: port for port in self.table.all()} == self.model
        for vm_uuid in MACHINES:
            of_machine = {uuid: port for uuid, port in self.model.items() if port.vm_uuid == vm_uuid}
            assert self.table.of_machine(vm_uuid) == of_machine

    @invariant()
    def the_files_are_the_model(self) -> None:
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        assert found == {f"vm/{port.vm_name}/{port.vmi_uuid}" for port in self.model.values()}
        folders = {path.name for path in (self.root / "vm").iterdir()}
        assert folders == {port.vm_name for port in self.model.values()}


TestModelOfPorts = ModelOfPorts.TestCase
TestModelOfPorts.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
