"""What becomes of a NAD: the network that it makes or refers to, or what its owner has to mend.

Which network a NAD stands for is decided when it is made: another subnet or reference in a NAD that stands is refused,
since pods have addresses of the old one. A NAD that goes takes its network along once the last interface is gone; until
then the network is retired and takes no pods. A NAD that comes again revives its network if the subnets are equal, else
waits for it to be gone.

Not promised: that a changed reference is noticed if the manager did not run meanwhile; only networks are in the store.
"""

import logging
from collections import defaultdict
from collections.abc import Callable

import msgspec

from contrail_config.errors import ConflictError
from contrail_config.objects import EventType, FqName, VirtualNetwork
from manager.configuration import ManagerConfiguration
from manager.controller.nad_record import NadRecord
from manager.controller.network_table import NetworkTable
from manager.events import EventRecorder, about_nad
from manager.mapping.catalogue import Catalogue, ForeignNad, KnownNad, ServedNad, UnusableNad
from manager.mapping.fq_names import nad_network_name
from manager.mapping.isolation import may_use_network
from manager.mapping.virtual_network import nad_network
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.reasons import Reason

log = logging.getLogger(__name__)


class NadReconciler:
    """`look_again` is told a NAD whose reference leads nowhere yet; `tell_astray` is for when it still does later."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        networks: NetworkTable,
        recorder: EventRecorder,
        look_again: Callable[[str], None],
    ) -> None:
        self._configuration = configuration
        self._catalogue = catalogue
        self._networks = networks
        self._recorder = recorder
        self._look_again = look_again
        self._followers: defaultdict[FqName, set[str]] = defaultdict(set)  # NADs to be settled at the next change

    async def settle(self, key: str, record: NadRecord) -> KnownNad:
        """Brings the store to what the NAD wants, and returns what pods can have of it."""
        definition, own = record.definition, self.own_network(key)
        if definition is None:
            return await self._refuse(record, Reason.NETWORK_INVALID, record.problem)
        if isinstance(definition, ForeignDefinition):
            await self.end(key)
            return ForeignNad(definition.plugin)
        if own is not None and (own.retired or record.replaces) and own.subnets != definition.subnets:
            if not await self._networks.retire(own):
                self._followers[own.fq_name].add(key)
                message = f"pods still use the old network {own.name}: this one is made when the last of them is gone"
                return await self._refuse(record, Reason.NETWORK_STILL_IN_USE, message)
            own = None
        served = await self._serve(key, record, definition, own)
        record.replaces = False
        return served

    async def end(self, key: str) -> None:
        """Retires the network that a NAD of this name made, if there is one."""
        if own := self.own_network(key) or self._networks.sent(self._name(key)):
            await self._networks.retire(own)

    async def tell_astray(self, record: NadRecord) -> None:
        """Tells the owner of a NAD that the network which it refers to is not there, if that is so."""
        definition = record.definition
        reference = definition.reference if isinstance(definition, NetworkDefinition) else None
        if reference is not None and reference not in self._catalogue.networks:
            await self._tell(record, Reason.NETWORK_NOT_FOUND, f"network {':'.join(reference)} is not there")

    def own_network(self, key: str) -> VirtualNetwork | None:
        """The network that a NAD of this name made."""
        network = self._catalogue.networks.get(self._name(key))
        return network if network is not None and network.nad == key else None

    def concerned(self, name: FqName) -> set[str]:
        """NADs to be settled again since the network of this name came, went or changed."""
        keys = self._followers.pop(name, set())
        network = self._catalogue.networks.get(name)
        if network is not None and network.retired and network.nad is not None:
            keys.add(network.nad)
        return keys

    async def _serve(
        self, key: str, record: NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> KnownNad:
        wanted = definition.reference or self._name(key)
        bound = own.fq_name if own is not None else self._reference_before(key, record)
        if bound not in (None, wanted):
            message = f"it stands for network {':'.join(bound)} until it is made anew, not for {':'.join(wanted)}"
            await self._tell(record, Reason.REFERENCE_CHANGE_REFUSED, message)
            self._followers[bound].add(key)
            return ServedNad(definition.config_name, bound)
        if definition.reference is not None:
            return await self._refer(key, record, definition.config_name, definition.reference)
        return await self._make(key, record, definition, own)

    def _reference_before(self, key: str, record: NadRecord) -> FqName | None:
        """The network that the NAD referred to when it was last usable, if that is still there."""
        known = self._catalogue.nads.get(key)
        if record.replaces or not isinstance(known, ServedNad) or known.network not in self._catalogue.networks:
            return None
        return known.network

    async def _refer(self, key: str, record: NadRecord, config_name: str, reference: FqName) -> KnownNad:
        if not may_use_network(self._configuration, own=record.nad.namespace, network=reference):
            message = f"namespace isolation keeps {record.nad.namespace} from network {':'.join(reference)}"
            return await self._refuse(record, Reason.NETWORK_FORBIDDEN, message)
        self._followers[reference].add(key)
        if reference in self._catalogue.networks:
            record.told = None
        else:
            self._look_again(key)
        return ServedNad(config_name, reference)

    async def _make(
        self, key: str, record: NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> KnownNad:
        wanted = nad_network(record.nad, definition, self._configuration)
        holder = self._catalogue.networks.get(wanted.fq_name)
        if own is None and holder is not None:
            self._followers[wanted.fq_name].add(key)
            message = f"there is a network {wanted.name} already: give this NAD another name"
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

    async def _write(self, record: NadRecord, wanted: VirtualNetwork, own: VirtualNetwork | None) -> None:
        record.told = None
        if own is not None and own == msgspec.structs.replace(wanted, vni=own.vni):
            return
        kept = await self._networks.put(msgspec.structs.replace(wanted, vni=own.vni if own else 0))
        if own is None:
            message = f"network {kept.name} with subnets {_cidrs(kept)}"
            log.info("%s: made %s", record.nad.key, message)
            await self._recorder.record(about_nad(record.nad), EventType.NORMAL, Reason.NETWORK_CREATED, message)

    async def _refuse(self, record: NadRecord, reason: Reason, message: str) -> UnusableNad:
        await self._tell(record, reason, message)
        return UnusableNad(message)

    async def _tell(self, record: NadRecord, reason: Reason, message: str) -> None:
        """Tells the NAD's owner, unless that is what was told last."""
        if record.told != (reason, message):
            record.told = (reason, message)
            log.info("%s: %s: %s", record.nad.key, reason, message)
            await self._recorder.record(about_nad(record.nad), EventType.WARNING, reason, message)

    def _name(self, key: str) -> FqName:
        namespace, _, name = key.partition("/")
        return nad_network_name(self._configuration.cluster_name, namespace=namespace, name=name)


def _cidrs(network: VirtualNetwork) -> str:
    return ", ".join(f"{subnet.cidr} (gateway {subnet.gateway or 'none'})" for subnet in network.subnets)
