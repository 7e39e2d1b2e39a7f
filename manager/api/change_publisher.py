"""Publishes changes of pods, networks and events to the change log, as the lists show them.

Whoever makes a change calls it. It does nothing unless the log records. A message holds the object as
it is at the moment of the change: nothing is read from the store.

Networks are collected for `COLLECTING` seconds, since each pod changes the number of interfaces of its networks. The
numbers are counted once when recording starts and then kept, so that a change costs the same with any number of pods.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from contrail_config.objects import Event, FqName, VirtualMachine, VirtualNetwork
from manager.api.change_log import ChangeLog
from manager.api.types import (
    NetworkView,
    NodeView,
    PodNetworks,
    PodView,
    WatchedKind,
    WatchMessage,
    WatchMessageType,
    network_key,
)
from manager.api.views import network_view, pod_networks
from manager.controller.pod_record import Assignment, PodRecord

COLLECTING = 0.25
"""Seconds for which changes of networks are collected."""

PodViewOf = Callable[[PodRecord, VirtualMachine | None], PodView]


class ChangePublisher:
    """`records` are the pods, `networks` those of the catalogue; `view` returns a pod as the API shows it."""

    def __init__(
        self,
        change_log: ChangeLog,
        *,
        records: Mapping[str, PodRecord],
        networks: Mapping[FqName, VirtualNetwork],
        view: PodViewOf,
    ) -> None:
        self._log = change_log
        self._records = records
        self._networks = networks
        self._view = view
        self._interfaces: Counter[str] = Counter()  # by uuid of the network
        self._known: dict[FqName, VirtualNetwork] = {}  # as last published, or as recording started
        self._changed: set[FqName] = set()
        self._names: dict[str, FqName] = {}  # by uuid
        self._collecting: asyncio.TimerHandle | None = None
        change_log.on_start(self._start)

    def pod_changed(self, record: PodRecord, vm: VirtualMachine | None) -> None:
        """Publishes the pod of the record, with its virtual machine if it has one."""
        if self._log.is_recording and record.pod is not None:
            self._publish_pod(WatchMessageType.APPLIED, self._view(record, vm))
            networks = () if vm is None else tuple(interface.network_uuid for interface in vm.interfaces)
            self._publish_pod_networks(WatchMessageType.APPLIED, pod_networks(record, networks))

    def pod_gone(self, record: PodRecord) -> None:
        """Publishes that the pod, which the record still has, does not exist any more."""
        if self._log.is_recording and record.pod is not None:
            self._publish_pod(WatchMessageType.DELETED, self._view(record, None))
            self._publish_pod_networks(WatchMessageType.DELETED, pod_networks(record, ()))

    def assignment_changed(self, before: Assignment | None, after: Assignment | None) -> None:
        """Counts the interfaces that a pod had and has."""
        if not self._log.is_recording:
            return
        self._interfaces.subtract(_networks(before))
        self._interfaces.update(_networks(after))
        for uuid in {*_networks(before), *_networks(after)}:
            if (name := self._names.get(uuid)) is not None:
                self.network_changed(name)

    def network_changed(self, name: FqName) -> None:
        """Publishes the network of this name soon, as it is then."""
        if not self._log.is_recording:
            return
        self._changed.add(name)
        network = self._networks.get(name)
        if network is not None:
            self._names[network.uuid] = name
        if self._collecting is None:
            self._collecting = asyncio.get_running_loop().call_later(COLLECTING, self._publish_networks)

    def networks_loaded(self) -> None:
        """Publishes all networks: a watch that began before they were read may have others."""
        for name in self._networks:
            self.network_changed(name)

    def event_recorded(self, event: Event) -> None:
        """Publishes an event as it is stored."""
        if not self._log.is_recording:
            return
        key = (event.kind, event.namespace, event.name, event.uid, event.type, event.reason, event.message)
        self._log.publish(
            key,
            WatchedKind.EVENTS,
            namespace=event.namespace,
            name=event.name,
            message=encoded(WatchMessageType.APPLIED, WatchedKind.EVENTS, event),
        )

    def close(self) -> None:
        """Publishes nothing more. Idempotent."""
        if self._collecting is not None:
            self._collecting.cancel()
        self._log.close()

    def _start(self) -> None:
        self._known = dict(self._networks)
        self._names = {network.uuid: name for name, network in self._networks.items()}
        self._changed.clear()
        self._interfaces = count_interfaces(self._records.values())

    def _publish_pod(self, kind: WatchMessageType, view: PodView) -> None:
        message = encoded(kind, WatchedKind.PODS, view)
        key = (WatchedKind.PODS, view.namespace, view.name)
        self._log.publish(key, WatchedKind.PODS, namespace=view.namespace, name=view.name, message=message)

    def _publish_pod_networks(self, kind: WatchMessageType, view: PodNetworks) -> None:
        message = encoded(kind, WatchedKind.POD_NETWORKS, view)
        key = (WatchedKind.POD_NETWORKS, view.namespace, view.name)
        self._log.publish(key, WatchedKind.POD_NETWORKS, namespace=view.namespace, name=view.name, message=message)

    def _publish_networks(self) -> None:
        self._collecting = None
        changed, self._changed = self._changed, set()
        for name in changed:
            network = self._networks.get(name)
            last = self._known.pop(name, None)
            if last is not None and (network is None or network.uuid != last.uuid):
                self._names.pop(last.uuid, None)
                self._publish_network(WatchMessageType.DELETED, last)
            if network is not None:
                self._known[name] = network
                self._publish_network(WatchMessageType.APPLIED, network)

    def _publish_network(self, kind: WatchMessageType, network: VirtualNetwork) -> None:
        view = network_view(network, self._interfaces[network.uuid])
        namespace, name = network_key(view)
        key = (WatchedKind.NETWORKS, network.uuid)
        message = encoded(kind, WatchedKind.NETWORKS, view)
        self._log.publish(key, WatchedKind.NETWORKS, namespace=namespace, name=name, message=message)


def count_interfaces(records: Iterable[PodRecord]) -> Counter[str]:
    """Returns the numbers of interfaces by uuid of their network."""
    return Counter(uuid for record in records for uuid in _networks(record.assignment))


def encoded(
    kind: WatchMessageType, watched: WatchedKind, item: NetworkView | NodeView | PodNetworks | PodView | Event
) -> bytes:
    """Returns the message as JSON."""
    return msgspec.json.encode(WatchMessage(kind, watched, msgspec.Raw(msgspec.json.encode(item))))


def _networks(assignment: Assignment | None) -> tuple[str, ...]:
    return () if assignment is None else assignment.networks
