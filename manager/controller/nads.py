"""Keeps virtual networks as the NADs want them, and tells the mapping which NADs can be used.

A NAD has a network of its own, which it makes, or refers to one that is there. Which one is decided when the NAD is
made: another subnet or reference in a NAD that stands is refused, since pods have addresses of the old one. A NAD that
goes takes its network along once the last interface is gone; until then the network is retired and takes no pods. A NAD
that comes again revives its network if the subnets are equal, else waits for it to be gone.

Not promised: that a changed reference is noticed if the manager did not run meanwhile; only networks are in the store.
"""

import logging
from collections import defaultdict
from collections.abc import Callable

import msgspec

from contrail_config.errors import ConflictError, StoreError
from contrail_config.objects import EventType, FqName, VirtualNetwork
from contrail_config.store import Store
from manager.configuration import ManagerConfiguration
from manager.controller.network_table import NetworkTable
from manager.controller.work_queue import WorkQueue
from manager.events import EventRecorder, about_nad
from manager.mapping.catalogue import Catalogue, ForeignNad, KnownNad, ServedNad, UnusableNad
from manager.mapping.isolation import may_refer
from manager.mapping.names import nad_network_name
from manager.mapping.network import nad_network
from manager.needs import Need, nad_need, network_need
from manager.parsing.definition import ForeignDefinition, NetworkDefinition
from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.reasons import Reason
from manager.source import Nad

log = logging.getLogger(__name__)

_AT_ONCE = 16


class _NadRecord:
    """A NAD as the source last told, what it defines (or what is wrong with it), and what its owner was last told.

    `replaces`: it came in the place of another one of the same name whose end nobody told.
    """

    __slots__ = ("definition", "nad", "problem", "replaces", "told")

    def __init__(self, nad: Nad, before: "_NadRecord | None", *, default_mtu: int) -> None:
        self.nad = nad
        self.replaces = before is not None and before.nad.uid != nad.uid
        self.told: tuple[Reason, str] | None = None if before is None or self.replaces else before.told
        self.definition: NetworkDefinition | ForeignDefinition | None = None
        self.problem = ""
        try:
            self.definition = parse_nad(nad, default_mtu=default_mtu)
        except NadError as error:
            self.problem = str(error)


class NadController:
    """Follows NADs; `wake` has pods tried again that wait for what came."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        wake: Callable[[Need], None],
    ) -> None:
        self.queue = WorkQueue(self._work_off, limit=_AT_ONCE, passing=StoreError)
        self.astray = WorkQueue(self._tell_astray, limit=_AT_ONCE)
        self.networks = NetworkTable(store, catalogue.networks, changed=self._network_changed)
        self._configuration = configuration
        self._catalogue = catalogue
        self._recorder = recorder
        self._wake = wake
        self._records: dict[str, _NadRecord] = {}
        self._followers: defaultdict[FqName, set[str]] = defaultdict(set)  # NADs to be worked off at the next change

    def apply(self, nad: Nad) -> None:
        """The NAD is there, as the source tells it."""
        before = self._records.get(nad.key)
        if before is None or before.nad != nad:
            mtu = self._configuration.pod_network.mtu
            self._records[nad.key] = _NadRecord(nad, before, default_mtu=mtu)
            self.queue.add(nad.key)

    def gone(self, nad: Nad) -> None:
        """The NAD is no more. A successor of the same name is left alone."""
        record = self._records.get(nad.key)
        if record is not None and record.nad.uid == nad.uid:
            del self._records[nad.key]
            self._catalogue.nads.pop(nad.key, None)
            self.queue.add(nad.key)

    def sweep(self) -> None:
        """Retires networks of NADs that the source did not tell of: to be called when it told of all."""
        for network in self._catalogue.networks.values():
            key = network.nad
            if key is not None and key not in self._records and network.fq_name == self._name(key):
                self.queue.add(key)

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()
        await self.astray.close()

    def _network_changed(self, name: FqName) -> None:
        self._wake(network_need(name))
        network = self._catalogue.networks.get(name)
        for key in self._followers.pop(name, ()):
            self.queue.add(key)
        if network is not None and network.retired and network.nad is not None:
            self.queue.add(network.nad)

    async def _work_off(self, key: str) -> None:
        record = self._records.get(key)
        known = await self._settle(key, record)
        if self._records.get(key) is not record:
            return  # it changed meanwhile, and is worked off again
        if known is None:
            self._catalogue.nads.pop(key, None)
        elif self._catalogue.nads.get(key) != known:
            self._catalogue.nads[key] = known
            self._wake(nad_need(key))

    async def _settle(self, key: str, record: _NadRecord | None) -> KnownNad | None:
        """Brings the store to what the NAD wants, and returns what pods can have of it."""
        own = self._own_network(key)
        definition = None if record is None else record.definition
        if own is not None and (record is None or isinstance(definition, ForeignDefinition)):
            await self.networks.retire(own)
        if record is None:
            return None
        if isinstance(definition, ForeignDefinition):
            return ForeignNad(definition.plugin)
        if definition is None:
            return await self._refuse(record, Reason.NETWORK_INVALID, record.problem)
        if own is not None and (own.retired or record.replaces) and own.subnets != definition.subnets:
            if not await self.networks.retire(own):
                self._followers[own.fq_name].add(key)
                message = f"pods still use the old network {own.name}: this one is made when the last of them is gone"
                return await self._refuse(record, Reason.NETWORK_STILL_IN_USE, message)
            own = None
        served = await self._serve(key, record, definition, own)
        record.replaces = False
        return served

    async def _serve(
        self, key: str, record: _NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> KnownNad:
        wanted = definition.reference or self._name(key)
        bound = own.fq_name if own is not None else self._reference_before(key, record)
        if bound not in (None, wanted):
            message = f"it stands for network {':'.join(bound)} until it is made anew, not for {':'.join(wanted)}"
            await self._tell(record, Reason.REFERENCE_CHANGE_REFUSED, message)
            return ServedNad(definition.config_name, bound)
        if definition.reference is not None:
            return await self._refer(record, definition, definition.reference)
        return await self._make(record, definition, own)

    async def _refer(self, record: _NadRecord, definition: NetworkDefinition, reference: FqName) -> KnownNad:
        if not may_refer(self._configuration, own=record.nad.namespace, network=reference):
            message = f"namespace isolation keeps {record.nad.namespace} from network {':'.join(reference)}"
            return await self._refuse(record, Reason.NETWORK_FORBIDDEN, message)
        self._followers[reference].add(record.nad.key)
        if reference in self._catalogue.networks:
            record.told = None
        else:
            self.astray.add(record.nad.key)
        return ServedNad(definition.config_name, reference)

    async def _tell_astray(self, key: str) -> None:
        """Tells that the network which a NAD refers to is not there: not before other NADs had the time to make it."""
        await self.queue.settled()
        record = self._records.get(key)
        if record is None or not isinstance(record.definition, NetworkDefinition):
            return
        reference = record.definition.reference
        if reference is not None and reference not in self._catalogue.networks:
            await self._tell(record, Reason.NETWORK_NOT_FOUND, f"network {':'.join(reference)} is not there")

    async def _make(self, record: _NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None) -> KnownNad:
        wanted = nad_network(record.nad, definition, self._configuration)
        holder = self._catalogue.networks.get(wanted.fq_name)
        if own is None and holder is not None:
            owner = f"of NAD {holder.nad}" if holder.nad else "that no NAD made"
            self._followers[wanted.fq_name].add(record.nad.key)
            message = f"network {wanted.name} is there already, one {owner}: give this NAD another name"
            return await self._refuse(record, Reason.NETWORK_NAME_TAKEN, message)
        served = ServedNad(definition.config_name, wanted.fq_name)
        if own is not None and own.subnets != wanted.subnets:
            message = f"subnets {_cidrs(own)} stay until it is made anew, it does not get {_cidrs(wanted)}"
            await self._tell(record, Reason.SUBNET_CHANGE_REFUSED, message)
            return served
        try:
            await self._write(record, wanted, own)
        except ConflictError as error:
            return await self._refuse(record, Reason.NETWORK_NAME_TAKEN, str(error))
        return served

    async def _write(self, record: _NadRecord, wanted: VirtualNetwork, own: VirtualNetwork | None) -> None:
        record.told = None
        if own is not None and own == msgspec.structs.replace(wanted, vni=own.vni):
            return
        kept = await self.networks.put(msgspec.structs.replace(wanted, vni=own.vni if own else 0))
        if own is None:
            message = f"network {kept.name} with subnets {_cidrs(kept)}"
            log.info("%s: made %s", record.nad.key, message)
            await self._recorder.record(about_nad(record.nad), EventType.NORMAL, Reason.NETWORK_CREATED, message)

    async def _refuse(self, record: _NadRecord, reason: Reason, message: str) -> UnusableNad:
        await self._tell(record, reason, message)
        return UnusableNad(message)

    async def _tell(self, record: _NadRecord, reason: Reason, message: str) -> None:
        """Tells the NAD's owner, unless that is what was told last."""
        if record.told != (reason, message):
            record.told = (reason, message)
            log.info("%s: %s: %s", record.nad.key, reason, message)
            await self._recorder.record(about_nad(record.nad), EventType.WARNING, reason, message)

    def _own_network(self, key: str) -> VirtualNetwork | None:
        """The network that a NAD of this name made."""
        network = self._catalogue.networks.get(self._name(key))
        return network if network is not None and network.nad == key else None

    def _reference_before(self, key: str, record: _NadRecord) -> FqName | None:
        """The network that the NAD referred to when it was last usable, if that is still there."""
        known = self._catalogue.nads.get(key)
        if record.replaces or not isinstance(known, ServedNad) or known.network not in self._catalogue.networks:
            return None
        return known.network

    def _name(self, key: str) -> FqName:
        namespace, _, name = key.partition("/")
        return nad_network_name(self._configuration.cluster_name, namespace=namespace, name=name)


def _cidrs(network: VirtualNetwork) -> str:
    return ", ".join(f"{subnet.cidr} (gateway {subnet.gateway or 'none'})" for subnet in network.subnets)
