"""Stores of a node without a cluster: an SQLite file, or a Contrail API server beside one.

The file keeps what a Contrail API server has no place for: uids of manifests, and events. A Contrail API server knows
no lease, so machines of one cluster name would delete each other's pods: a second one refuses to start.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.objects import VirtualMachine
from contrail_config.store import UNPLUGGED_HOLD
from contrail_config.vnc.follower import Intervals
from contrail_config.vnc.store import VncStore
from contrail_embedded.settings import NodeSettings
from contrail_service.errors import DataError, RestartError
from manager.configuration import ContrailStoreSettings, ManagerConfiguration
from manager.contrail_client import connect_to_contrail
from manager.controller.network_table import FindNetwork, no_others
from manager.deletions import WatchDeletions, no_deletions
from manager.kubernetes.store_deletions import StoreDeletions
from manager.manager import Manager, run_until_first_ends
from manager.store_space import once_there_is_space

_MAX_NAMED = 3


class NodeStores(NamedTuple):
    """The file, and the Contrail API server if networks, virtual machines and addresses are there."""

    file: SqliteStore
    contrail: VncStore | None = None

    @property
    def objects(self) -> SqliteStore | VncStore:
        """The store of networks, virtual machines and addresses."""
        return self.contrail or self.file

    @property
    def orphan_hold(self) -> float:
        """Seconds for which addresses without a virtual machine are held: somebody may have deleted a running pod's."""
        return 0.0 if self.contrail is None else UNPLUGGED_HOLD

    @property
    def watch_deletions(self) -> WatchDeletions:
        """Deletions of virtual machines; nobody else writes to the file."""
        if self.contrail is None:
            return no_deletions
        return StoreDeletions(self.contrail, is_gone=_unknown, on_appeared=_ignore).watch

    @property
    def find_network(self) -> FindNetwork:
        """Returns networks that others made; nobody else writes to the file."""
        return no_others if self.contrail is None else self.contrail.find_network

    def problems(self) -> list[str]:
        """Returns why the stores cannot be used, or may be out of date."""
        return [*self.file.problems(), *(self.contrail.problems() if self.contrail is not None else ())]


def _unknown(_machine: VirtualMachine) -> bool:
    """The manager decides whether the pod of a virtual machine is gone."""
    return False


def _ignore(_machine: VirtualMachine) -> None:
    """What appears without the manager is found when it starts."""


@asynccontextmanager
async def open_stores(settings: NodeSettings, registry: CollectorRegistry) -> AsyncIterator[NodeStores]:
    """Yields the stores; that of a Contrail API server is not started. Raises ServiceError."""
    configuration = settings.configuration
    async with _open_file(settings.store) as file:
        if isinstance(configuration.store, ContrailStoreSettings):
            async with _contrail_store(configuration, configuration.store, registry) as contrail:
                yield NodeStores(file, contrail)
        else:
            yield NodeStores(file)


async def start_contrail(stores: NodeStores, configuration: ManagerConfiguration) -> None:
    """Reads the Contrail API server, if there is one. Raises RestartError."""
    if stores.contrail is not None:
        with _as_restart_error():
            await stores.contrail.start()
            await _check_only_node(stores.contrail, stores.file, configuration)


async def run_manager(manager: Manager, stores: NodeStores) -> None:
    """Runs the manager, and what a Contrail API server needs beside it. Raises RestartError, and what `Manager` does.

    Its errors are those of a server, which may be away: with the file they are bugs, and keep their tracebacks.
    """
    contrail = stores.contrail
    if contrail is None:
        await manager.run()
    else:
        with _as_restart_error():
            await run_until_first_ends(manager.run(), contrail.maintain(), contrail.watch_other_writers())


@contextmanager
def _as_restart_error() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise RestartError(str(error)) from error


@asynccontextmanager
async def _open_file(path: str) -> AsyncIterator[SqliteStore]:
    try:
        store = await once_there_is_space(partial(SqliteStore.open, path))
    except StoreUnavailableError as error:
        raise DataError(str(error)) from error
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def _contrail_store(
    configuration: ManagerConfiguration, settings: ContrailStoreSettings, registry: CollectorRegistry
) -> AsyncIterator[VncStore]:
    async with connect_to_contrail(settings, registry) as client:
        store = VncStore(
            client,
            cluster=configuration.cluster_name,
            intervals=Intervals(poll=settings.poll_interval),
            take_over=settings.take_over,
            projects=settings.named_projects,
        )
        try:
            yield store
        finally:
            await store.close()


async def _check_only_node(contrail: VncStore, file: SqliteStore, configuration: ManagerConfiguration) -> None:
    """Raises StoreError if the cluster has a pod of another node of which this one has no manifest."""
    identities = await file.identities()
    foreign = [
        machine
        for machine in await contrail.virtual_machines()
        if machine.node != configuration.node and ("Pod", machine.namespace, machine.pod) not in identities
    ]
    if foreign:
        named = ", ".join(f"{machine.name} on {machine.node}" for machine in foreign[:_MAX_NAMED])
        raise StoreError(
            f"Contrail API server: cluster {configuration.cluster_name} has pods of other nodes than"
            f" {configuration.node} ({named}): give each machine with manifests a cluster-name of its own"
        )
