"""Has every pod's list of interfaces written, and freed when the pod is gone.

Level-triggered: whatever happened to a pod, its key is worked off, and that means comparing what the source last told
with what the store holds for its place, and settling the difference. So bursts of events cost one piece of work, and a
manager that was killed at any moment goes on where it was: allocating is repeatable for the same interfaces, and a
machine is written in one piece.

What is given stays: a machine is written once, and a pod whose annotations change after that is told that nothing else
will (rule 5). Until then they count as they are, so a waiting or refused pod can still be mended. What is freed is only
what belonged to the uid that was there before.
"""

import logging
import time
from collections.abc import Callable, Iterable

from contrail_config.errors import StoreError
from contrail_config.objects import EventType, VirtualMachine, machine_name
from contrail_config.store import Store
from contrail_config.views import PodState
from contrail_service.logs import log_about
from manager.configuration import ManagerConfiguration
from manager.controller.address_desk import AddressDesk
from manager.controller.claims import Claims
from manager.controller.held_ports import HeldPorts
from manager.controller.pod_writer import Plugged, PodWriter
from manager.controller.record import HOST_NETWORK, READY, Outcome, PodRecord, requested_macs
from manager.controller.waiting_room import WaitingRoom
from manager.controller.work_queue import WorkQueue
from manager.events import EventRecorder, about_pod
from manager.mapping.annotations import without_other_annotations
from manager.mapping.catalogue import Catalogue
from manager.mapping.changes import difference
from manager.mapping.drafts import PodDraft, draft_interfaces
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.mapping.machine import describe_machine
from manager.metrics import ManagerMetrics
from manager.needs import Need, NeedKind, address_need, uid_need
from manager.reasons import Reason
from manager.source import Pod

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Pods that are worked on at the same moment: enough for a store to fill its transactions."""


class PodController:
    """Follows pods; `network_released` is told the uuid of each network in which addresses came free."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        metrics: ManagerMetrics,
        plugged: Plugged,
        network_released: Callable[[str], None],
    ) -> None:
        self.records: dict[str, PodRecord] = {}
        self.queue = WorkQueue(self._work_off, limit=_AT_ONCE, passing=StoreError)
        self._unplugged = WorkQueue(self._shorten_hold, limit=_AT_ONCE, passing=StoreError)
        self._configuration = configuration
        self._catalogue = catalogue
        self._store = store
        self._recorder = recorder
        self._metrics = metrics
        self._network_released = network_released
        self._room = WaitingRoom()
        self._claims = Claims(self.wake)
        self._ports = HeldPorts(time.monotonic)
        self._desk = AddressDesk(store, retry=self.queue.add, retry_later=self.queue.add_later)
        self._writer = PodWriter(
            configuration=configuration,
            store=store,
            desk=self._desk,
            claims=self._claims,
            ports=self._ports,
            plugged=plugged,
            released=self._released,
        )

    async def load(self) -> None:
        """Takes over the machines that the store holds; those of another cluster are somebody else's."""
        machines = await self._store.machines()
        own = [machine for machine in machines if machine.cluster == self._configuration.cluster_name]
        if len(own) < len(machines):
            log.warning("%d machines of other clusters are left alone", len(machines) - len(own))
        for machine in own:
            key = f"{machine.namespace}/{machine.pod}"
            record = self.records[key] = PodRecord(None, since=time.monotonic())
            record.take_over(machine)
            record.found = machine
            self._claims.claim(key, [uid_need(machine.uuid), *requested_macs(machine)])

    def apply(self, pod: Pod) -> None:
        """The pod is there, as the source tells it."""
        if pod.gone:
            self.gone(pod)
            return
        key, pod = _key(pod), without_other_annotations(pod)
        record = self.records.setdefault(key, PodRecord(None, since=0.0))
        if record.pod != pod:
            if record.pod is None or record.pod.uid != pod.uid:
                record.since = time.monotonic()
            record.pod = pod
            self.queue.add(key)

    def gone(self, pod: Pod) -> None:
        """The pod is no more, or holds nothing any more. A successor of the same name is left alone."""
        record = self.records.get(_key(pod))
        if record is not None and (record.pod is None or record.pod.uid == pod.uid):
            record.pod = None
            self.queue.add(_key(pod))

    def sweep(self) -> None:
        """Frees what the store holds for pods that the source did not tell of: to be called when it told of all."""
        for key, record in self.records.items():
            if record.pod is None:
                self.queue.add(key)

    async def release_strays(self) -> None:
        """Frees addresses whose interface has no machine: left by a kill between allocating and writing.

        No pod is worked on meanwhile, so none is in that state now.
        """
        async with self.queue.paused():
            strays = await self._strays()
            if strays:
                log.info("freeing the addresses of %d interfaces that were never finished", len(strays))
                await self._store.release(strays, hold=0.0)
        if strays:
            self._released([network.uuid for network in self._catalogue.networks.values()])

    def wake(self, need: Need) -> None:
        """Has the pods tried again that wait for this."""
        for key in self._room.waiting_for(need):
            self.queue.add(key)

    def unplugged(self, vmi_uuids: Iterable[str]) -> None:
        """The node unplugged the ports of these interfaces: addresses of deleted machines are held no longer."""
        for vmi_uuid in vmi_uuids:
            if network_uuid := self._ports.take(vmi_uuid):
                self._unplugged.add((vmi_uuid, network_uuid))

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()
        await self._unplugged.close()

    async def _work_off(self, key: str) -> None:
        record = self.records.get(key)
        if record is None:
            return
        with log_about(pod=key):
            if record.held is not None and not self._is_held_for(record.pod, record):
                await self._writer.take_back(key, record)
            pod = record.pod
            if pod is None:
                await self._forget(key, record)
            elif pod.host_network:
                await self._settle(key, record, pod, HOST_NETWORK)
            elif record.held is not None:
                await self._compare(key, record, pod)
            else:
                await self._give(key, record, pod)

    def _is_held_for(self, pod: Pod | None, record: PodRecord) -> bool:
        """Whether what the store holds for the place is this pod's; one uid under two names is two pods."""
        return (
            pod is not None
            and not pod.host_network
            and record.held is not None
            and record.held.uuid == pod.uid
            and record.held.name == machine_name(self._configuration.cluster_name, pod.namespace, pod.name)
        )

    async def _forget(self, key: str, record: PodRecord) -> None:
        await self._writer.take_back(key, record)
        if record.pod is None:
            self._room.leave(key)
            self._desk.leave(key)
            del self.records[key]

    async def _give(self, key: str, record: PodRecord, pod: Pod) -> None:
        try:
            draft = self._draft(pod)
            machine = await self._writer.give(key, pod, draft, record)
        except MappingError as error:
            await self._put_off(key, record, pod, error)
        else:
            self._metrics.pod_seconds.observe(time.monotonic() - record.since)
            await self._settle(key, record, pod, READY)
            await self._tell_assigned(pod, machine, draft)

    async def _put_off(self, key: str, record: PodRecord, pod: Pod, error: MappingError) -> None:
        if isinstance(error, PodWaitsError):
            outcome = Outcome(PodState.WAITING, error.reason, str(error), error.needs)
        else:
            await self._writer.give_back_unfinished(record)
            outcome = Outcome(PodState.REFUSED, error.reason, str(error))
        await self._settle(key, record, pod, outcome)

    async def _compare(self, key: str, record: PodRecord, pod: Pod) -> None:
        """Tells a pod whose networks were changed that it keeps those that it has."""
        machine = record.found or await self._store.machine(pod.uid)
        record.found = None
        if change := self._change(pod, machine):
            message = f"the networks of a pod stay as they were when it was made: {change}"
            await self._settle(key, record, pod, Outcome(PodState.READY, Reason.NETWORKS_CHANGED, message))
        else:
            await self._settle(key, record, pod, READY)

    def _change(self, pod: Pod, machine: VirtualMachine) -> str | None:
        try:
            return difference(machine, self._draft(pod).interfaces)
        except PodRefusedError as error:
            return str(error)
        except PodWaitsError as error:
            own = {(NeedKind.NAD, interface.nad) for interface in machine.interfaces}
            own |= {(NeedKind.NETWORK, ":".join(interface.network)) for interface in machine.interfaces}
            return None if own.issuperset(error.needs) else str(error)

    def _draft(self, pod: Pod) -> PodDraft:
        return draft_interfaces(pod, catalogue=self._catalogue, configuration=self._configuration)

    async def _settle(self, key: str, record: PodRecord, pod: Pod, outcome: Outcome) -> None:
        """Notes how far the pod got; its owner hears of what keeps it, whenever that is something else than before."""
        self._room.wait(key, outcome.needs)
        if outcome.state is not PodState.WAITING or outcome.reason is not Reason.ADDRESSES_EXHAUSTED:
            self._desk.leave(key)
        news = outcome != record.outcome
        record.outcome = outcome
        if news and outcome.reason is not None:
            log.info("%s: %s", outcome.reason, outcome.message)
            await self._recorder.record(about_pod(pod), EventType.WARNING, outcome.reason, outcome.message)

    async def _tell_assigned(self, pod: Pod, machine: VirtualMachine, draft: PodDraft) -> None:
        message = describe_machine(machine)
        log.info("assigned %s", message)
        await self._recorder.record(about_pod(pod), EventType.NORMAL, Reason.INTERFACES_ASSIGNED, message)
        for notice in draft.notices:
            await self._recorder.record(about_pod(pod), EventType.WARNING, notice.reason, notice.message)

    async def _strays(self) -> list[str]:
        """Interfaces that have addresses, but neither a machine nor a pod that is about to have one."""
        owners = await self._store.address_owners()
        known = sum(len(record.held.networks) for record in self.records.values() if record.held is not None)
        if len(owners) == known:
            return []  # as after every orderly end; else all machines are read, which may be many
        for machine in await self._store.machines():
            owners.difference_update(interface.uuid for interface in machine.interfaces)
        for record in self.records.values():
            owners.difference_update(request.owner for request in record.unfinished)
        return list(owners)

    def _released(self, networks: Iterable[str]) -> None:
        for network_uuid in networks:
            self._network_released(network_uuid)
            self._desk.released(network_uuid)
            self.wake(address_need(network_uuid))

    async def _shorten_hold(self, port: tuple[str, str]) -> None:
        vmi_uuid, network_uuid = port
        await self._store.release([vmi_uuid])
        self._released([network_uuid])


def _key(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
