"""The manager's place in a cluster: what it reads there and tells there, and whether it is the one that writes.

Of several managers one leads, by a lease; the others are standbys, which are ready, read nothing and write nothing. All
that a manager does through `client` is fenced: once the lease is lost or ran out, no write is even tried, whoever is in
the middle of something. A manager that lost its lease does not become a standby again, since what it knows is of then:
its process ends, and the next one begins anew.
"""

import logging
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.leader_election import LeaderElection, LeaseTimings
from contrail_config.objects import VirtualMachine
from manager.configuration import KubernetesSourceSettings, ManagerConfiguration, MetaPlugin
from manager.kubernetes.deleted_virtual_machines import DeletedVirtualMachines
from manager.kubernetes.event_log import COMPONENT, KubernetesEventLog
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.node_report_watch import NodeReportWatch
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter

log = logging.getLogger(__name__)

LEASE = COMPONENT
"""Name of the lease."""


class Cluster:
    """What one manager reads and tells: source, log of events, statuses, reports of nodes, and losses of machines.

    `client` is for its store.
    """

    def __init__(self, client: KubeClient, election: LeaderElection, *, meta_plugin: MetaPlugin) -> None:
        self.client = client
        self.source = KubernetesSource(client, definition=NadCrd(client))
        self.event_log = KubernetesEventLog(client.low_priority(), instance=socket.gethostname())
        self.nodes = NodeReportWatch(client)
        self.losses = DeletedVirtualMachines(client, is_gone=self.source.is_gone)
        self._election = election
        self._statuses = StatusWriter(client.low_priority(), pod_of=self.source.pod_of)
        self._writes_statuses = meta_plugin is MetaPlugin.NONE
        self.leads = False

    def assigned(self, machine: VirtualMachine, *, anew: bool) -> None:
        """The store holds the pod's machine: has its status written, unless a meta plugin does."""
        if self._writes_statuses:
            self._statuses.assigned(machine, anew=anew)

    def readiness(self, manager: list[str]) -> list[str]:
        """What keeps this process from being ready; `manager`: what keeps the manager from it, once it leads.

        A standby is ready if it could lead; a leader that works already, unless it may not do what it needs.
        """
        if not self.leads:
            return [self._election.problem] if self._election.problem is not None else []
        return (
            [*manager, *self.source.problems(), *self.losses.problems()]
            if manager
            else self.client.authorization_failures()
        )

    def refusal(self) -> str:
        """Why this process knows nothing that could be asked for, and who does; empty if it leads."""
        return "" if self.leads else f"this manager stands by: {self._election.holder or 'it is not known who'} leads"

    async def run(self, manager: Callable[[], Awaitable[None]]) -> None:
        """Waits until this process leads, and runs the manager, which was not run before.

        Raises KubeLeadershipLostError if it leads no longer, and whatever the manager raises.
        """
        log.info("standing by until lease %s is free", LEASE)
        async with self._election.lead():
            self.leads = True
            try:
                await manager()
            finally:
                await self._statuses.close()


@asynccontextmanager
async def join_cluster(
    configuration: ManagerConfiguration,
    settings: KubernetesSourceSettings,
    *,
    access: ClientConfig | None = None,
    lease_times: LeaseTimings | None = None,
) -> AsyncIterator[Cluster]:
    """Gives the cluster that the settings name, or the one that is reached by `access`.

    Raises KubeConfigurationError if it is not known how to reach it.
    """
    access = access or await load_client_config(kubeconfig=settings.kubeconfig or "")
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    async with connect(access) as voter:
        election = LeaderElection(
            voter, namespace=settings.lease_namespace, name=LEASE, identity=identity, timings=lease_times
        )
        async with connect(access, before_write=election.leadership.check) as client:
            yield Cluster(client, election, meta_plugin=configuration.meta_plugin.kind)
