"""Queries of the manager's API: combines the manager's pod records with the objects in the store."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from contrail_config.errors import NotFoundError
from contrail_config.objects import Event, VirtualMachine
from contrail_config.store import EventLog, Store
from manager.api.types import InterfaceView, NetworkView, PodView, interface_views
from manager.configuration import MetaPluginSettings
from manager.controller.pod_record import PodRecord
from manager.mapping.interface_names import sandbox_names


class ItemFilter(msgspec.Struct, frozen=True):
    """Filter by namespace and name; None matches all."""

    namespace: str | None = None
    name: str | None = None

    def matches(self, *, namespace: str, name: str) -> bool:
        """Whether the object matches."""
        return self.namespace in (None, namespace) and self.name in (None, name)


class ManagerQueries:
    """Returns objects sorted by name; `records` are the pods by `namespace/name`."""

    def __init__(
        self,
        records: Mapping[str, PodRecord],
        store: Store,
        event_log: EventLog,
        *,
        meta_plugin: MetaPluginSettings,
    ) -> None:
        self._records = records
        self._store = store
        self._event_log = event_log
        self._meta_plugin = meta_plugin

    async def networks(self, item_filter: ItemFilter) -> list[NetworkView]:
        """Returns networks by namespace and name of their NAD; one without a NAD has its own name and no namespace."""
        interfaces = Counter(
            uuid
            for record in self._records.values()
            if record.assignment is not None
            for uuid in record.assignment.networks
        )
        views = []
        for network in await self._store.networks():
            namespace, _, name = (network.nad or f"/{network.fq_name[2]}").partition("/")
            if item_filter.matches(namespace=namespace, name=name):
                views.append(NetworkView(network, interfaces[network.uuid]))
        return views

    async def pods(self, item_filter: ItemFilter) -> list[PodView]:
        """Returns the pods that the source delivered, with their virtual machines, if written."""
        virtual_machines = {vm.uuid: vm for vm in await self._virtual_machines(item_filter)}
        return [
            self._pod_view(record, virtual_machines)
            for _, record in sorted(self._records.items())
            if record.pod is not None and item_filter.matches(namespace=record.pod.namespace, name=record.pod.name)
        ]

    async def interfaces(self, item_filter: ItemFilter) -> list[InterfaceView]:
        """Returns interfaces by pod and index."""
        virtual_machines = await self._virtual_machines(item_filter)
        return [view for vm in virtual_machines for view in interface_views(vm, self._names(vm))]

    async def events(self, item_filter: ItemFilter) -> list[Event]:
        """Returns the events of matching objects, oldest first."""
        return await self._event_log.events(namespace=item_filter.namespace, name=item_filter.name)

    def _pod_view(self, record: PodRecord, virtual_machines: Mapping[str, VirtualMachine]) -> PodView:
        assert record.pod is not None
        machine = virtual_machines.get(record.pod.uid)
        return PodView(
            namespace=record.pod.namespace,
            name=record.pod.name,
            uid=record.pod.uid,
            node=record.pod.node,
            state=record.outcome.state,
            reason=record.outcome.reason,
            message=record.outcome.message or None,
            machine=machine,
            names=self._names(machine) if machine else (),
        )

    def _names(self, virtual_machine: VirtualMachine) -> tuple[str, ...]:
        return sandbox_names(virtual_machine.interfaces, self._meta_plugin)

    async def _virtual_machines(self, item_filter: ItemFilter) -> list[VirtualMachine]:
        """Reads one virtual machine if the filter names one pod, else all."""
        if item_filter.namespace is not None and item_filter.name is not None:
            return await self._virtual_machine_of(f"{item_filter.namespace}/{item_filter.name}")
        virtual_machines = await self._store.virtual_machines()
        return [vm for vm in virtual_machines if item_filter.matches(namespace=vm.namespace, name=vm.pod)]

    async def _virtual_machine_of(self, pod: str) -> list[VirtualMachine]:
        record = self._records.get(pod)
        if record is None or record.assignment is None:
            return []
        try:
            return [await self._store.virtual_machine(record.assignment.uuid)]
        except NotFoundError:
            return []  # deleted after the record was read
