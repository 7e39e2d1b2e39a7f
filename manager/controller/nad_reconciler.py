"""NAD reconciler: creates the network of a NAD, or resolves its reference, or reports what its owner has to fix.

A NAD is bound to its network when it is created: changing the subnets or the reference of an existing NAD is rejected,
since pods have addresses of the old network. A deleted NAD retires its network, which accepts no new pods and is
deleted with its last interface. A recreated NAD revives its network if the subnets are equal, else waits until it is
deleted.

Not promised: that a reference changed while no manager ran is noticed; the store keeps only networks.
"""

import logging
from collections.abc import Awaitable, Callable

import msgspec

from contrail_config.errors import ConflictError
from contrail_config.objects import EventType, FqName, VirtualNetwork
from contrail_config.stored_identity import with_stored_identity
from manager.configuration import ManagerConfiguration
from manager.controller.nad_record import NadRecord
from manager.controller.network_dependents import NetworkDependents
from manager.controller.network_table import NetworkTable, describe_subnets
from manager.controller.spread_networks import SpreadNetworks
from manager.events import EventRecorder, about_nad
from manager.mapping.catalogue import Catalogue, ForeignNad, KnownNad, ServedNad, UnusableNad
from manager.mapping.fq_names import nad_network_name
from manager.mapping.isolation import may_use_network
from manager.mapping.virtual_network import nad_network
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.reasons import Reason

log = logging.getLogger(__name__)


class NadReconciler:
    """`check_reference` queues a NAD whose reference dangles; `report_dangling` is for when it still does later.

    `pods_released` returns once queued pods have released what they hold in the network of this uuid, or after a bound.
    """

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        networks: NetworkTable,
        recorder: EventRecorder,
        check_reference: Callable[[str], None],
        pods_released: Callable[[str], Awaitable[None]],
    ) -> None:
        self.spread = SpreadNetworks()
        self.dependents = NetworkDependents()
        self._configuration = configuration
        self._catalogue = catalogue
        self._networks = networks
        self._recorder = recorder
        self._check_reference = check_reference
        self._pods_released = pods_released

    async def reconcile(self, key: str, record: NadRecord) -> KnownNad:
        """Reconciles the store with the NAD, and returns what pods can use of it."""
        await self._networks.restore_if_deleted(self._name(key))
        definition, own = record.definition, self.own_network(key)
        if definition is None:
            # Its network stays, since pods may use it, but new pods wait until the NAD is corrected.
            return await self._refuse(record, Reason.NETWORK_INVALID, record.problem)
        if isinstance(definition, ForeignDefinition):
            await self.end(key)
            return ForeignNad(definition.plugin)
        if own is not None and (own.retired or record.replaces) and own.subnets != definition.subnets:
            if not await self._retire(own):
                self.dependents.add(key, own.fq_name)
                message = f"pods still use the old network {own.name}: the new one is created when the last is gone"
                return await self._refuse(record, Reason.NETWORK_STILL_IN_USE, message)
            own = None  # deleted just now: create the new one
        served = await self._serve(key, record, definition, own)
        record.replaces = False
        return served

    async def end(self, key: str) -> None:
        """Retires the network that a NAD of this name created, if there is one."""
        self.dependents.discard(key)
        await self._networks.restore_if_deleted(self._name(key))
        # A network whose write was not confirmed may exist too, although the catalogue does not have it.
        if own := self.own_network(key) or self._networks.unconfirmed(self._name(key)):
            await self._retire(own)

    async def report_dangling(self, record: NadRecord) -> None:
        """Reports that the network that the NAD refers to does not exist, if that is so."""
        reference = record.reference
        if reference is not None and reference not in self._catalogue.networks:
            await self._report(record, Reason.NETWORK_NOT_FOUND, f"network {':'.join(reference)} not found")

    def own_network(self, key: str) -> VirtualNetwork | None:
        """Returns the network that a NAD of this name created."""
        network = self._catalogue.networks.get(self._name(key))
        return network if network is not None and network.nad == key else None

    def pop_dependents(self, name: FqName) -> set[str]:
        """Returns the NADs to reconcile since the network of this name was created, deleted or changed."""
        keys = self.dependents.pop(name)
        network = self._catalogue.networks.get(name)
        if network is not None and network.retired and network.nad is not None:
            keys.add(network.nad)
        return keys

    async def _retire(self, network: VirtualNetwork) -> bool:
        """Returns whether the network is deleted: pods that were deleted just before the NAD do not hold it back."""
        await self._pods_released(network.uuid)
        return await self._networks.retire(network)

    async def _serve(
        self, key: str, record: NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> KnownNad:
        wanted = definition.reference or self._name(key)
        bound = own.fq_name if own is not None else self._previous_reference(key, record)
        if bound not in (None, wanted):
            message = f"stays bound to network {':'.join(bound)}, not {':'.join(wanted)}: recreate the NAD to change it"
            await self._report(record, Reason.REFERENCE_CHANGE_REFUSED, message)
            self.dependents.add(key, bound)
            return ServedNad(definition.config_name, bound)
        if definition.reference is not None:
            return await self._refer(key, record, definition.config_name, definition.reference)
        return await self._create(key, record, definition, own)

    def _previous_reference(self, key: str, record: NadRecord) -> FqName | None:
        """Returns the network that the NAD referred to when it was last usable, if that still exists."""
        known = self._catalogue.nads.get(key)
        if record.replaces or not isinstance(known, ServedNad) or known.network not in self._catalogue.networks:
            return None
        return known.network

    async def _refer(self, key: str, record: NadRecord, config_name: str, reference: FqName) -> KnownNad:
        if not may_use_network(self._configuration, own=record.nad.namespace, network=reference):
            message = f"network {':'.join(reference)}: denied to {record.nad.namespace} by namespace isolation"
            return await self._refuse(record, Reason.NETWORK_FORBIDDEN, message)
        await self._networks.look_for(reference)
        self.dependents.add(key, reference)
        if reference in self._catalogue.networks:
            record.reported = None  # a later problem is reported again
        else:
            # Reported only if it still dangles later: at start the other NAD may simply not be reconciled yet.
            self._check_reference(key)
        return ServedNad(config_name, reference)

    async def _create(
        self, key: str, record: NadRecord, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> KnownNad:
        wanted = self.spread.with_mode(nad_network(record.nad, definition, self._configuration), definition, own)
        if own is not None:
            wanted = with_stored_identity(wanted, own)
        holder = self._catalogue.networks.get(wanted.fq_name) or self._networks.unconfirmed(wanted.fq_name)
        is_known = wanted.fq_name in self._catalogue.networks
        if (
            own is None
            and holder is not None
            and (holder.nad != key or is_known)
            and not self._networks.may_adopt(holder)
        ):
            self.dependents.add(key, wanted.fq_name)
            message = f"network {wanted.name} already exists: give this NAD another name"
            return await self._refuse(record, Reason.NETWORK_NAME_TAKEN, message)
        served = ServedNad(definition.config_name, wanted.fq_name)
        if own is not None and own.subnets != wanted.subnets:
            message = (
                f"keeps subnets {describe_subnets(own)}, not {describe_subnets(wanted)}:"
                " recreate the NAD to change them"
            )
            await self._report(record, Reason.SUBNET_CHANGE_REFUSED, message)
            return served
        try:
            await self._write(record, wanted, own)
        except ConflictError as error:  # somebody else created it, and the watch has not delivered that yet
            self.dependents.add(key, wanted.fq_name)
            return await self._refuse(record, Reason.NETWORK_NAME_TAKEN, str(error))
        if own is not None:
            await self._report_unroutable(record, own)
        return served

    async def _report_unroutable(self, record: NadRecord, network: VirtualNetwork) -> None:
        """Reports that a network on many nodes cannot become l3, once."""
        if (unroutable := self.spread.pop_unroutable(network)) is not None:
            nodes, subnets = unroutable
            noun, verb = ("subnet", "has") if len(subnets) == 1 else ("subnets", "have")
            message = (
                f"network {network.name} has pods on {nodes} nodes and cannot become l3: {noun} {', '.join(subnets)}"
                f" {verb} no gateway; recreate the NAD with larger subnets, or state its forwarding mode l2_l3"
            )
            log.warning("%s: %s", record.nad.key, message)
            await self._recorder.record(about_nad(record.nad), EventType.WARNING, Reason.NETWORK_NOT_ROUTED, message)

    async def _write(self, record: NadRecord, wanted: VirtualNetwork, own: VirtualNetwork | None) -> None:
        record.reported = None
        # The store chooses the vni when it creates a network, so it is no part of the comparison.
        if own is not None and own == msgspec.structs.replace(wanted, vni=own.vni):
            return
        kept = await self._networks.put(msgspec.structs.replace(wanted, vni=own.vni if own else 0))
        nodes = self.spread.remove(kept.fq_name) if kept.has_node_blocks else None
        if nodes is not None:
            message = (
                f"network {kept.name} has pods on {nodes} nodes: its forwarding mode is l3 from now on;"
                " nodes know its present pods one by one until these have been replaced"
            )
            log.info("%s: %s", record.nad.key, message)
            await self._recorder.record(about_nad(record.nad), EventType.NORMAL, Reason.NETWORK_ROUTED, message)
        if own is None:
            message = f"network {kept.name} with subnets {describe_subnets(kept)}"
            log.info("%s: created %s", record.nad.key, message)
            await self._recorder.record(about_nad(record.nad), EventType.NORMAL, Reason.NETWORK_CREATED, message)

    async def _refuse(self, record: NadRecord, reason: Reason, message: str) -> UnusableNad:
        await self._report(record, reason, message)
        return UnusableNad(message)

    async def _report(self, record: NadRecord, reason: Reason, message: str) -> None:
        """Records a warning on the NAD, unless it is the one that was recorded last."""
        if record.reported != (reason, message):
            record.reported = (reason, message)
            log.info("%s: %s: %s", record.nad.key, reason, message)
            await self._recorder.record(about_nad(record.nad), EventType.WARNING, reason, message)

    def _name(self, key: str) -> FqName:
        namespace, _, name = key.partition("/")
        return nad_network_name(self._configuration.cluster_name, namespace=namespace, name=name)
