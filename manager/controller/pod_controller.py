"""Follows pods: has each settled with the store, again whenever what it waits for appears.

Level-triggered: whatever happened to a pod, its key is worked off. So a burst of events costs one piece of work, and a
manager that was killed at any moment is followed by one that goes on where it was: allocating is repeatable for the
same interfaces, and a machine is written in one piece.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from contrail_config.errors import StoreError
from contrail_config.objects import VirtualMachine
from contrail_config.store import Store
from contrail_service.errors import ConfigurationError
from contrail_service.logs import log_about
from manager.configuration import ManagerConfiguration
from manager.controller.address_allocator import AddressAllocator
from manager.controller.address_recovery import recover_addresses
from manager.controller.claims import Claims
from manager.controller.held_ports import HeldPorts
from manager.controller.orphaned_addresses import orphaned_interfaces
from manager.controller.pending_index import PendingIndex
from manager.controller.pod_reconciler import Assigned, PodReconciler
from manager.controller.pod_record import UNTRIED, PodRecord, requested_macs
from manager.controller.pod_writer import Plugged, PodWriter
from manager.controller.static_pods import StaticPods
from manager.deletions import Removed
from manager.dependencies import Dependency, address_dependency, uid_dependency
from manager.events import EventRecorder
from manager.mapping.annotations import with_network_annotations_only
from manager.mapping.catalogue import Catalogue
from manager.metrics import ManagerMetrics
from manager.source import Pod
from manager.work_queue import WorkQueue

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Pods that are worked on at the same moment: enough for a store to fill its transactions."""


class PodController:
    """Follows pods; `network_released` is told the uuid of each network in which addresses came free.

    `stray_hold`: seconds for which addresses are held back that are found without a machine.
    """

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        metrics: ManagerMetrics,
        plugged: Plugged,
        stray_hold: float,
        network_released: Callable[[str], None],
        assigned: Assigned,
    ) -> None:
        self.records: dict[str, PodRecord] = {}
        self.queue = WorkQueue(self._work_off, limit=_AT_ONCE, passing=StoreError)
        self._unplugged = WorkQueue(self._shorten_hold, limit=_AT_ONCE, passing=StoreError)
        self._cluster = configuration.cluster_name
        self._foreign: dict[str, str] = {}  # uuids of machines, and their clusters
        self._catalogue = catalogue
        self._store = store
        self._stray_hold = stray_hold
        self._network_released = network_released
        self._room = PendingIndex()
        self._claims = Claims(self.wake)
        self._ports = HeldPorts(time.monotonic)
        self._mirrors = StaticPods(settle_later=self.queue.add_later, plugged=plugged, clock=time.monotonic)
        self._desk = AddressAllocator(store, retry=self.queue.add, retry_later=self.queue.add_later)
        self._settler = PodReconciler(
            configuration=configuration,
            catalogue=catalogue,
            recorder=recorder,
            metrics=metrics,
            room=self._room,
            desk=self._desk,
            mirrors=self._mirrors,
            writer=PodWriter(
                cluster=configuration.cluster_name,
                store=store,
                desk=self._desk,
                claims=self._claims,
                ports=self._ports,
                plugged=plugged,
                released=self._released,
            ),
            assigned=assigned,
        )

    async def load(self) -> None:
        """Takes over the machines that the store holds; those of another cluster are somebody else's."""
        machines = await self._store.virtual_machines()
        own = [machine for machine in machines if machine.cluster == self._cluster]
        self._foreign = {machine.uuid: machine.cluster for machine in machines if machine.cluster != self._cluster}
        if self._foreign:
            log.warning("%d machines of other clusters are left alone", len(self._foreign))
        for machine in own:
            key = f"{machine.namespace}/{machine.pod}"
            record = self.records[key] = PodRecord(None, since=time.monotonic())
            record.take_over(machine)
            record.found = machine
            self._claims.claim(key, [uid_dependency(machine.uuid), *requested_macs(machine)])
        await recover_addresses(self._store, own)
        await self._load_held_ports()

    def apply(self, pod: Pod) -> None:
        """The pod is there, as the source tells it.

        Raises ConfigurationError if its machine is of another cluster: it may run, and must not get another list.
        """
        if pod.uid in self._foreign:
            problem = f"the machine of pod {_key(pod)} is of cluster {self._foreign[pod.uid]!r}"
            raise ConfigurationError(f"cluster-name: cannot be {self._cluster!r}: {problem}")
        if pod.gone:
            self.gone(pod)
            return
        key, pod = _key(pod), with_network_annotations_only(pod)
        record = self.records.setdefault(key, PodRecord(None, since=0.0))
        if record.pod != pod:
            if record.pod is None or record.pod.uid != pod.uid:
                record.since = time.monotonic()
                record.outcome = UNTRIED
            record.pod, record.ended = pod, None
            self.queue.add(key)

    def gone(self, pod: Pod) -> None:
        """The pod is no more, or holds nothing any more. A successor of the same name is left alone."""
        record = self.records.get(_key(pod))
        if record is not None and (record.pod is None or record.pod.uid == pod.uid):
            record.pod = None
            if pod.gone:
                record.ended = pod.uid
            self.queue.add(_key(pod))

    def removed(self, machine: Removed) -> None:
        """A machine is no more: if somebody else removed it and its pod lives, it is made again."""
        record = self.records.get(machine.place)
        if record is not None and record.held is not None and record.held.uuid == machine.uuid:
            self._miss(machine.place, record, machine.last)

    def remaining(self, machines: Mapping[str, str]) -> None:
        """These machines are there, uuids by place: the others that are held were removed, or are not there yet."""
        for key, record in self.records.items():
            if record.held is not None and machines.get(key) != record.held.uuid:
                self._miss(key, record)

    def sweep(self) -> None:
        """Frees what the store holds for pods that the source did not tell of: to be called when it told of all."""
        for key, record in self.records.items():
            if record.pod is None:
                self.queue.add(key)

    async def release_strays(self) -> None:
        """Frees addresses of nobody, once: no pod is worked on meanwhile, so none has some for a moment only."""
        async with self.queue.paused():
            strays = await orphaned_interfaces(self._store, self.records.values())
            if strays:
                log.info("freeing the addresses of %d interfaces that have no machine", len(strays))
                await self._store.release(strays, hold=self._stray_hold)
                await self._load_held_ports()
        if strays:
            self._released([network.uuid for network in self._catalogue.networks.values()])

    def wake(self, need: Dependency) -> None:
        """Has the pods tried again that wait for this."""
        for key in self._room.waiting_for(need):
            self.queue.add(key)

    def unplugged(self, vmi_uuids: Iterable[str]) -> None:
        """The node unplugged the ports of these interfaces: addresses of deleted machines are held no longer."""
        for vmi_uuid in vmi_uuids:
            if key := self._mirrors.unplugged(vmi_uuid):
                self._end(key)
            if network_uuid := self._ports.take(vmi_uuid):
                self._unplugged.add((vmi_uuid, network_uuid))

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()
        await self._unplugged.close()

    async def _load_held_ports(self) -> None:
        self._ports.add((await self._store.held_owners()).items())

    def _end(self, key: str) -> None:
        """The sandbox of the pod that was here last is known to have ended."""
        record = self.records[key]
        if record.pod is None and record.held is not None:
            record.ended = record.held.uuid
            self.queue.add(key)

    def _miss(self, key: str, record: PodRecord, last: VirtualMachine | None = None) -> None:
        """Has the machine put back if its pod is there, or when that is told of: as it was last, if that is known."""
        record.lost, record.found = last or record.found or record.lost, None
        if record.pod is not None and record.held is not None and record.pod.uid == record.held.uuid:
            self.queue.add(key)

    async def _work_off(self, key: str) -> None:
        record = self.records.get(key)
        if record is None:
            return
        with log_about(pod=key):
            if await self._settler.settle(key, record):
                del self.records[key]

    async def _shorten_hold(self, port: tuple[str, str]) -> None:
        vmi_uuid, network_uuid = port
        await self._store.shorten_holds([vmi_uuid])
        self._released([network_uuid])

    def _released(self, networks: Iterable[str]) -> None:
        for network_uuid in networks:
            self._network_released(network_uuid)
            self._desk.released(network_uuid)
            self.wake(address_dependency(network_uuid))


def _key(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
