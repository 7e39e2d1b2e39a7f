"""The manager's connection to a cluster: everything it reads and reports there, under leader election.

One of several managers leads, by a lease. The others stand by: they are ready, read nothing and write nothing. All
writes through `client` are fenced: once the lease is lost or expired, no write is sent, whatever is in progress. A
manager that lost its lease does not become a standby, since its caches are outdated: its process ends and is restarted.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from contrail_config.kube.candidate_identity import candidate_identity
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.leader_election import LeaderElection, LeaseTimings
from contrail_config.kube.observer import ClientObserver
from contrail_config.kubernetes.definition_check import DefinitionCheck
from contrail_config.objects import VirtualMachine
from manager.configuration import KubernetesSourceSettings, ManagerConfiguration, MetaPlugin
from manager.kubernetes.deleted_virtual_machines import DeletedVirtualMachines
from manager.kubernetes.event_log import COMPONENT, KubernetesEventLog
from manager.kubernetes.invalid_objects import InvalidObjects
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.node_report_watch import NodeReportWatch
from manager.kubernetes.orphaned_virtual_machines import OrphanedVirtualMachines
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter

log = logging.getLogger(__name__)

LEASE = COMPONENT
"""Name of the lease."""

_CLEAN_UP = 2.0
"""Seconds for the work in progress to end before the lease is released; the process is ended after 4.5 s."""


class ClusterMember:
    """One manager's source, event log, status writer, node reports, and deletions of virtual machines.

    `client` is for a store in the cluster.
    """

    def __init__(
        self, client: KubeClient, election: LeaderElection, *, meta_plugin: MetaPlugin, node_selector: str
    ) -> None:
        self.client = client
        self.source = KubernetesSource(client, nad_crd=NadCrd(client), node_selector=node_selector)
        self.event_log = KubernetesEventLog(client.low_priority(), instance=socket.gethostname())
        self.node_reports = NodeReportWatch(client)
        self.orphans = OrphanedVirtualMachines(pod_exists=self.source.pod_exists, problems=self.source.problems)
        self.deletions = DeletedVirtualMachines(client, is_gone=self.source.is_gone, on_appeared=self.orphans.appeared)
        self.definitions = DefinitionCheck(client)
        self.invalid_objects = InvalidObjects()
        self.invalid_objects.add(self.node_reports.invalid_objects)
        self.invalid_objects.add(self.deletions.invalid_objects)
        self._election = election
        self._statuses = StatusWriter(client.low_priority(), pod_of=self.source.pod_of)
        self._writes_statuses = meta_plugin is MetaPlugin.NONE
        self.is_leader = False

    def on_assigned(self, vm: VirtualMachine, *, is_new: bool) -> None:
        """Queues the write of the pod's network status, unless a meta plugin writes it."""
        if self._writes_statuses:
            self._statuses.on_assigned(vm, is_new=is_new)

    def readiness(self, manager: list[str]) -> list[str]:
        """Returns why this process is not ready; `manager`: why the manager is not, once it leads.

        A standby is ready if it could lead; a leader, once ready, stays so unless it lacks permissions, skips invalid
        objects, or the definitions are of an older release. The latter makes a standby unready, too: a rolling update
        stops before such a manager leads.
        """
        if not self.is_leader:
            problem = self._election.problem
            return [*([] if problem is None else [problem]), *self.definitions.problems()]
        return [
            *(self._unready_reasons(manager) if manager else self.client.authorization_failures()),
            *self.definitions.problems(),
            *self.invalid_objects.problems(),
        ]

    def _unready_reasons(self, manager: list[str]) -> list[str]:
        return [*manager, *self.source.problems(), *self.deletions.problems()]

    def unavailable_reason(self) -> str:
        """Returns why this process cannot answer queries, and who can; empty if it leads."""
        if self.is_leader:
            return ""
        return f"this manager is on standby: the leader is {self._election.holder or 'unknown'}"

    def before_write(self) -> float:
        """Returns the seconds that a write to a store elsewhere may take. Raises KubeLeadershipLostError."""
        return self._election.leadership.check()

    async def run(self, manager: Callable[[], Awaitable[None]]) -> None:
        """Waits until this process leads, then runs the manager.

        Raises KubeLeadershipLostError when it no longer leads, and whatever the manager raises.
        """
        log.info("standing by until lease %s is free", LEASE)
        async with self._election.lead():
            self.is_leader = True
            async with _clean_up_in_time(asyncio.create_task(self._work(manager))) as work:
                await work

    async def _work(self, manager: Callable[[], Awaitable[None]]) -> None:
        try:
            await manager()
        finally:
            self.orphans.close()
            await self._statuses.close()


@asynccontextmanager
async def _clean_up_in_time(work: asyncio.Task[None]) -> AsyncIterator[asyncio.Future[None]]:
    """Yields a future of the task that may be cancelled; on exit, cancels the task and waits for its end, not for long.

    A write without a response would otherwise keep the lease until the process is killed, and the next manager waiting
    until it expires. What is still in progress then writes no more, since the lease is given up.
    """
    try:
        yield asyncio.shield(work)
    finally:
        work.cancel()
        _, unfinished = await asyncio.wait([work], timeout=_CLEAN_UP)
        if unfinished:
            log.warning("releasing the lease although writes are in progress for more than %g s", _CLEAN_UP)


@asynccontextmanager
async def join_cluster(
    configuration: ManagerConfiguration,
    settings: KubernetesSourceSettings,
    *,
    access: ClientConfig | None = None,
    lease_times: LeaseTimings | None = None,
    observer: ClientObserver | None = None,
) -> AsyncIterator[ClusterMember]:
    """Yields the cluster of the settings, or the one reached by `access`.

    Raises KubeConfigurationError if no API server is configured.
    """
    access = access or await load_client_config(kubeconfig=settings.kubeconfig or "")
    # The election has a connection of its own: its writes must not be fenced by the lease that they acquire, nor queue
    # behind others.
    async with (
        candidate_identity(f"{access.server} {settings.lease_namespace}/{LEASE}") as identity,
        connect(access, observer=observer) as election_client,
    ):
        election = LeaderElection(
            election_client, namespace=settings.lease_namespace, name=LEASE, identity=identity, timings=lease_times
        )
        async with connect(access, before_write=election.leadership.check, observer=observer) as client:
            yield ClusterMember(
                client,
                election,
                meta_plugin=configuration.meta_plugin.kind,
                node_selector=(settings.node_selector or "").strip(),
            )
