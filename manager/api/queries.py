"""Collects what the API answers, from what the manager keeps and what the store holds."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from contrail_config.errors import NotFoundError
from contrail_config.objects import Event, VirtualMachine
from contrail_config.store import EventLog, Store
from manager.api.types import InterfaceView, NetworkView, PodView, interface_views
from manager.controller.pod_record import PodRecord


class ItemFilter(msgspec.Struct, frozen=True):
    """Objects of one namespace, or of one name; None chooses all."""

    namespace: str | None = None
    name: str | None = None

    def takes(self, *, namespace: str, name: str) -> bool:
        """Whether the object is chosen."""
        return self.namespace in (None, namespace) and self.name in (None, name)


class ManagerQueries:
    """Everything in the order of its names; `records` are the pods by `namespace/name`."""

    def __init__(self, records: Mapping[str, PodRecord], store: Store, event_log: EventLog) -> None:
        self._records = records
        self._store = store
        self._event_log = event_log

    async def networks(self, selection: ItemFilter) -> list[NetworkView]:
        """Networks by namespace and name of their NAD; one that no NAD made has its own name, and no namespace."""
        interfaces = Counter(
            uuid
            for record in self._records.values()
            if record.assignment is not None
            for uuid in record.assignment.networks
        )
        views = []
        for network in await self._store.networks():
            namespace, _, name = (network.nad or f"/{network.fq_name[2]}").partition("/")
            if selection.takes(namespace=namespace, name=name):
                views.append(NetworkView(network, interfaces[network.uuid]))
        return views

    async def pods(self, selection: ItemFilter) -> list[PodView]:
        """Pods that the source told of, each with its machine, if it is written."""
        machines = {machine.uuid: machine for machine in await self._machines(selection)}
        return [
            _pod_view(record, machines)
            for _, record in sorted(self._records.items())
            if record.pod is not None and selection.takes(namespace=record.pod.namespace, name=record.pod.name)
        ]

    async def interfaces(self, selection: ItemFilter) -> list[InterfaceView]:
        """Interfaces by pod and index."""
        return [view for machine in await self._machines(selection) for view in interface_views(machine)]

    async def events(self, selection: ItemFilter) -> list[Event]:
        """Events by their objects, oldest first."""
        return await self._event_log.events(namespace=selection.namespace, name=selection.name)

    async def _machines(self, selection: ItemFilter) -> list[VirtualMachine]:
        """Of one pod it is one read, of more of them all are read."""
        if selection.namespace is not None and selection.name is not None:
            return await self._machine_of(f"{selection.namespace}/{selection.name}")
        machines = await self._store.virtual_machines()
        return [machine for machine in machines if selection.takes(namespace=machine.namespace, name=machine.pod)]

    async def _machine_of(self, pod: str) -> list[VirtualMachine]:
        record = self._records.get(pod)
        if record is None or record.assignment is None:
            return []
        try:
            return [await self._store.virtual_machine(record.assignment.uuid)]
        except NotFoundError:
            return []  # it is being deleted just now


def _pod_view(record: PodRecord, machines: Mapping[str, VirtualMachine]) -> PodView:
    assert record.pod is not None
    return PodView(
        namespace=record.pod.namespace,
        name=record.pod.name,
        uid=record.pod.uid,
        node=record.pod.node,
        state=record.outcome.state,
        reason=record.outcome.reason,
        message=record.outcome.message or None,
        machine=machines.get(record.pod.uid),
    )
