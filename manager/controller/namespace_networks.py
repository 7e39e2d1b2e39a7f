"""Pod networks of isolated namespaces: created, changed and retired with the annotations of their namespaces.

A namespace with `opencontrail.org/isolation: "true"` has a pod network of its own, as in Contrail, with the subnets and
settings of the cluster pod network. Its pods have it at index 0. It takes no new pods once the annotation or the
namespace is gone, and is deleted with its last interface.

A network of the same name that somebody else created, such as that of a NAD with the namespace's name, is left alone:
pods of the namespace wait then, until it is deleted.

Its addresses are reserved in the cluster pod network (`manager.mapping.virtual_machine.address_requests`).
"""

import logging
from collections.abc import Callable

import msgspec

from contrail_config.errors import ConflictError, StoreError
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.stored_identity import with_stored_identity
from manager.configuration import ManagerConfiguration
from manager.controller.network_table import NetworkTable, describe_subnets
from manager.mapping.catalogue import Catalogue
from manager.mapping.fq_names import isolated_network_name, namespace_of_isolated_network, pod_network_name
from manager.mapping.virtual_network import isolated_network
from manager.parsing.errors import AnnotationError
from manager.parsing.namespace_settings import ISOLATION_KEY, parse_namespace_settings

log = logging.getLogger(__name__)

_CONCURRENCY = 4


class NamespaceNetworks:
    """Follows the namespaces of the catalogue. `on_reconciled` is called with each name after a reconciliation."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        networks: NetworkTable,
        on_reconciled: Callable[[str], None],
    ) -> None:
        self._on_reconciled = on_reconciled
        self.queue = WorkQueue(self._reconcile, limit=_CONCURRENCY, transient=StoreError)
        self._configuration = configuration
        self._catalogue = catalogue
        self._networks = networks

    def changed(self, namespace: str) -> None:
        """Reconciles the namespace if it is isolated, or was and has a network that is not retired yet."""
        own = self._own(namespace)
        if ISOLATION_KEY in self._catalogue.namespaces.get(namespace, {}) or (own is not None and not own.retired):
            self.queue.add(namespace)

    def network_gone(self, name: FqName) -> None:
        """Reconciles the namespace whose own network has this name: somebody else's network may have had it."""
        namespace = namespace_of_isolated_network(self._configuration.cluster_name, name)
        if namespace is not None:
            self.changed(namespace)

    def unreconciled(self, namespace: str) -> list[str]:
        """Returns the namespace if it is queued: its pods wait for its network."""
        return [namespace] if namespace in self.queue else []

    def sweep(self) -> None:
        """Retires networks of namespaces that do not exist; to be called once the source has listed everything."""
        for network in self._catalogue.networks.values():
            if network.namespace is not None:
                self.queue.add(network.namespace)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    def deleted(self, namespace: str) -> None:
        """Reconciles the namespace, whose network somebody deleted."""
        self.queue.add(namespace)

    async def _reconcile(self, namespace: str) -> None:
        try:
            await self._reconcile_once(namespace)
        finally:
            self._on_reconciled(namespace)  # after a failure too, which is retried later

    async def _reconcile_once(self, namespace: str) -> None:
        await self._networks.restore_if_deleted(isolated_network_name(self._configuration.cluster_name, namespace))
        own = self._own(namespace)
        try:
            settings = parse_namespace_settings(self._catalogue.namespaces.get(namespace, {}))
        except AnnotationError as error:
            log.warning("namespace %s: its network stays as it is: %s", namespace, error)
            return
        if settings.isolated:
            await self._put(self._with_stored_subnets(isolated_network(namespace, settings, self._configuration)), own)
        elif own is not None:
            deleted = await self._networks.retire(own)
            log.info("network %s: %s", own.name, "deleted" if deleted else "takes no new pods")

    def _with_stored_subnets(self, network: VirtualNetwork) -> VirtualNetwork:
        """Returns the network with the subnets of the pod network as it is: one that others made has other gateways."""
        pod_network = self._catalogue.networks.get(pod_network_name(self._configuration.cluster_name))
        return network if pod_network is None else msgspec.structs.replace(network, subnets=pod_network.subnets)

    async def _put(self, wanted: VirtualNetwork, own: VirtualNetwork | None) -> None:
        if wanted.fq_name == pod_network_name(self._configuration.cluster_name):
            return  # of the namespace `default`
        # An unconfirmed network is being written, or was without an answer.
        holder = own or self._catalogue.networks.get(wanted.fq_name) or self._networks.unconfirmed(wanted.fq_name)
        if holder is not None and holder.namespace != wanted.namespace and not self._networks.may_adopt(holder):
            log.warning("network %s: already exists, and does not belong to the namespace", wanted.name)
            return
        if own is not None:
            wanted = with_stored_identity(wanted, own)
        if own is not None and own == msgspec.structs.replace(wanted, vni=own.vni):
            return
        try:
            kept = await self._networks.put(msgspec.structs.replace(wanted, vni=own.vni if own else 0))
        except ConflictError as error:  # a subnet of the pod network was removed that pods of this network still use
            log.warning("%s", error)
            return
        log.info("network %s: %s with subnets %s", kept.name, "changed" if own else "created", describe_subnets(kept))

    def _own(self, namespace: str) -> VirtualNetwork | None:
        network = self._catalogue.networks.get(isolated_network_name(self._configuration.cluster_name, namespace))
        return network if network is not None and network.namespace == namespace else None
