"""Looks at every change that managers make on a fake API server, at the moment when it is made."""

from contrail_config.objects import VirtualMachine
from tests.support.cluster_objects import holds_interfaces
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Record
from tests.support.stored_objects import BLOCK_KIND, VIRTUAL_MACHINE_KIND, allocated_addresses, stored_virtual_machines


class AddressAuditor:
    """`findings` are what was wrong: addresses of two live pods, or of none in the blocks, and pods that changed."""

    def __init__(self, server: FakeApiServer) -> None:
        self.findings: list[str] = []
        self._server = server
        self._first: dict[str, VirtualMachine] = {}
        server.storage.observers.append(self._look)

    def forget(self, machine: VirtualMachine) -> None:
        """What is made in its place may be another one."""
        self._first.pop(machine.uuid, None)

    def _look(self, record: Record) -> None:
        if record.collection not in (VIRTUAL_MACHINE_KIND.collection, BLOCK_KIND.collection):
            return
        pods = self._server.storage.objects(PODS).values()
        live = {pod["metadata"]["uid"] for pod in pods if holds_interfaces(pod)}
        owners: dict[tuple[str, str], str] = {}
        given = allocated_addresses(self._server)
        for machine in stored_virtual_machines(self._server).values():
            if machine.uuid in live:
                self._compare(machine, owners, given)

    def _compare(
        self, machine: VirtualMachine, owners: dict[tuple[str, str], str], given: dict[tuple[str, str], str]
    ) -> None:
        if self._first.setdefault(machine.uuid, machine) != machine:
            self.findings.append(f"{machine} was {self._first[machine.uuid]}")
        for interface in machine.interfaces:
            for address in interface.addresses:
                place = interface.network_uuid, address.address
                if owners.setdefault(place, interface.uuid) != interface.uuid:
                    self.findings.append(f"{place} is of {owners[place]} and of {interface.uuid}")
                if given.get(place) != interface.uuid:
                    self.findings.append(f"{place} of {interface.uuid} is given to {given.get(place)}")
