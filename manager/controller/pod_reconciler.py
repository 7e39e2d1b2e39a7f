"""What becomes of a pod: its list of interfaces, or what keeps it from one.

Settling a pod means comparing what the source last told of its place with what the store holds for it, and settling
the difference; it can be done again at any time. What is given stays: a machine is written once, and a pod whose
annotations change after that is told that nothing else will (rule 5). Until then they count as they are, so a waiting
or refused pod can still be mended. What is freed is only what belonged to the uid that was there before.
"""

import logging
import time
from typing import Protocol

from contrail_config.errors import NotFoundError, StoreRejectedError
from contrail_config.objects import EventType, FqName, VirtualMachine, virtual_machine_name
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration
from manager.controller.address_allocator import AddressAllocator
from manager.controller.pending_index import PendingIndex
from manager.controller.pod_record import HOST_NETWORK, READY, Held, Outcome, PodRecord
from manager.controller.pod_writer import PodWriter
from manager.controller.static_pods import StaticPods
from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.events import EventRecorder, about_pod
from manager.mapping.catalogue import Catalogue
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.mapping.interface_resolution import ResolvedInterfaces, resolve_interfaces
from manager.mapping.request_changes import describe_change
from manager.mapping.virtual_machine import summarize_virtual_machine
from manager.metrics import ManagerMetrics
from manager.reasons import Reason
from manager.source import Pod

log = logging.getLogger(__name__)


class Assigned(Protocol):
    """Is told of each pod's machine once it is written."""

    def __call__(self, machine: VirtualMachine, /, *, anew: bool) -> None:
        """The store holds the machine: since now (`anew`), or since long ago, which may be told often."""


class PodReconciler:
    """Settles one pod at a time; `room` is where it notes what pods wait for."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        recorder: EventRecorder,
        metrics: ManagerMetrics,
        room: PendingIndex,
        desk: AddressAllocator,
        mirrors: StaticPods,
        writer: PodWriter,
        assigned: Assigned,
    ) -> None:
        self._configuration = configuration
        self._catalogue = catalogue
        self._recorder = recorder
        self._metrics = metrics
        self._room = room
        self._desk = desk
        self._mirrors = mirrors
        self._writer = writer
        self._assigned = assigned

    async def settle(self, key: str, record: PodRecord) -> bool:
        """Settles the pod's place; tells whether nobody is there any more, and nothing is held for it."""
        await self._writer.find_sent(record)
        if self._mirrors.awaits(key, record):
            return False
        if record.held is not None and not self._is_held_for(record.pod, record):
            await self._writer.take_back(key, record)
        pod = record.pod
        if pod is None:
            await self._writer.take_back(key, record)
            self._room.leave(key)
            self._desk.leave(key)
            self._mirrors.leave(key)
            return record.pod is None
        if pod.host_network:
            await self._conclude(key, record, pod, HOST_NETWORK)
        elif record.held is not None:
            await self._compare(key, record, record.held, pod)
        else:
            await self._give(key, record, pod)
        return False

    def _is_held_for(self, pod: Pod | None, record: PodRecord) -> bool:
        """Whether what the store holds for the place is this pod's; one uid under two names is two pods."""
        return (
            pod is not None
            and not pod.host_network
            and record.held is not None
            and record.held.uuid == pod.uid
            and record.held.name == virtual_machine_name(self._configuration.cluster_name, pod.namespace, pod.name)
        )

    async def _give(self, key: str, record: PodRecord, pod: Pod) -> None:
        was_served = record.held is not None
        try:
            draft = self._draft(pod)
            machine = await self._writer.give(key, pod, draft, record)
        except MappingError as error:
            await self._put_off(key, record, pod, error)
        except StoreRejectedError as error:
            await self._conclude(key, record, pod, Outcome(PodState.WAITING, Reason.WRITE_REFUSED, str(error)))
            raise
        else:
            if not was_served:
                self._metrics.pod_seconds.observe(time.monotonic() - record.since)
            self._assigned(machine, anew=True)
            await self._conclude(key, record, pod, READY)
            await self._tell_assigned(pod, machine, draft)

    async def _put_off(self, key: str, record: PodRecord, pod: Pod, error: MappingError) -> None:
        """Notes why the pod has no machine, and keeps nothing for it that others may need."""
        await self._writer.give_back_unfinished(record)
        if isinstance(error, PodWaitsError):
            needs = (
                *error.dependencies,
                namespace_dependency(pod.namespace),
            )  # which may choose another network meanwhile
            outcome = Outcome(PodState.WAITING, error.reason, str(error), tuple(dict.fromkeys(needs)))
        else:
            self._writer.drop_claims(key)
            outcome = Outcome(PodState.REFUSED, error.reason, str(error))
        await self._conclude(key, record, pod, outcome)

    async def _compare(self, key: str, record: PodRecord, held: Held, pod: Pod) -> None:
        """Tells a pod whose networks were changed that it keeps those that it has; they are made again if they went."""
        try:
            machine = await self._writer.find(record, held)
        except NotFoundError as error:
            log.warning("a machine was removed by somebody else, and is made anew: %s", error)
            await self._give(key, record, pod)
            return
        if machine.node != pod.node:
            machine = await self._writer.move(machine, pod.node)
        self._assigned(machine, anew=False)
        record.found = None
        outcome = READY
        if change := self._change(pod, machine):
            message = f"the networks of a pod stay as they were when it was made: {change}"
            outcome = Outcome(PodState.READY, Reason.NETWORKS_CHANGED, message)
        await self._conclude(key, record, pod, outcome)

    def _change(self, pod: Pod, machine: VirtualMachine) -> str | None:
        """What the pod asks for now that it does not have; None as well if its own networks are not there any more."""
        first = machine.interfaces[0]
        try:
            draft = self._draft(pod, fallback=first.network if first.nad is None else None)
            return describe_change(machine, draft.interfaces)
        except PodRefusedError as error:
            return str(error)
        except PodWaitsError as error:
            own = {nad_dependency(interface.nad) for interface in machine.interfaces if interface.nad is not None}
            own |= {network_dependency(interface.network) for interface in machine.interfaces}
            return None if own.issuperset(error.dependencies) else str(error)

    def _draft(self, pod: Pod, *, fallback: FqName | None = None) -> ResolvedInterfaces:
        return resolve_interfaces(pod, catalogue=self._catalogue, configuration=self._configuration, fallback=fallback)

    async def _conclude(self, key: str, record: PodRecord, pod: Pod, outcome: Outcome) -> None:
        """Notes how far the pod got; its owner hears of what keeps it, whenever that is something else than before."""
        self._room.wait(key, outcome.needs)
        if outcome.state is not PodState.WAITING or outcome.reason is not Reason.ADDRESSES_EXHAUSTED:
            self._desk.leave(key)
        news = outcome != record.outcome
        record.outcome = outcome
        if news and outcome.reason is not None:
            log.info("%s: %s", outcome.reason, outcome.message)
            await self._recorder.record(about_pod(pod), EventType.WARNING, outcome.reason, outcome.message)

    async def _tell_assigned(self, pod: Pod, machine: VirtualMachine, draft: ResolvedInterfaces) -> None:
        message = summarize_virtual_machine(machine)
        log.info("assigned %s", message)
        await self._recorder.record(about_pod(pod), EventType.NORMAL, Reason.INTERFACES_ASSIGNED, message)
        for warning in draft.warnings:
            await self._recorder.record(about_pod(pod), EventType.WARNING, warning.reason, warning.message)
