"""Invariant checker for address allocation: inspects every write that managers make to a fake API server."""

from contrail_config.objects import VirtualMachine
from tests.support.cluster_objects import holds_interfaces
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Record
from tests.support.stored_objects import BLOCK_KIND, VIRTUAL_MACHINE_KIND, allocated_addresses, stored_virtual_machines


class AddressAuditor:
    """`findings`: addresses of two live pods, addresses missing in the blocks, and virtual machines that changed.

    `blocks_are_missing`: somebody deleted blocks, so that addresses in use may be free in the blocks for a while.
    """

    def __init__(self, server: FakeApiServer) -> None:
        self.findings: list[str] = []
        self.blocks_are_missing = False
        self._server = server
        self._first: dict[str, VirtualMachine] = {}
        server.storage.observers.append(self._look)

    def forget(self, vm: VirtualMachine) -> None:
        """Allows the replacement of this virtual machine to differ from it."""
        self._first.pop(vm.uuid, None)

    def _look(self, record: Record) -> None:
        if record.collection not in (VIRTUAL_MACHINE_KIND.collection, BLOCK_KIND.collection):
            return
        pods = self._server.storage.objects(PODS).values()
        live = {pod["metadata"]["uid"] for pod in pods if holds_interfaces(pod)}
        owners: dict[tuple[str, str], str] = {}
        allocated = allocated_addresses(self._server)
        for vm in stored_virtual_machines(self._server).values():
            if vm.uuid in live:
                self._compare(vm, owners, allocated)

    def _compare(
        self, vm: VirtualMachine, owners: dict[tuple[str, str], str], allocated: dict[tuple[str, str], str]
    ) -> None:
        if self._first.setdefault(vm.uuid, vm) != vm:
            self.findings.append(f"{vm} was {self._first[vm.uuid]}")
        for interface in vm.interfaces:
            for address in interface.addresses:
                key = interface.network_uuid, address.address
                if owners.setdefault(key, interface.uuid) != interface.uuid:
                    self.findings.append(f"{key}: used by {owners[key]} and by {interface.uuid}")
                if allocated.get(key) != interface.uuid and not (self.blocks_are_missing and key not in allocated):
                    self.findings.append(f"{key}: used by {interface.uuid}, allocated to {allocated.get(key)}")
