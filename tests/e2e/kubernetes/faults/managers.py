"""Managers as processes, and the supervisor that starts the next one when one ends."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster
from tests.support.cluster_processes import ManagerProcess

_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/contrail-manager"


class Managers:
    """Processes of one cluster, which act for the manager's account."""

    def __init__(self, cluster: Cluster, work: Path) -> None:
        self._cluster = cluster
        self._work = work
        self._kubeconfig = cluster.kubeconfig("contrail-manager")
        self._all: list[ManagerProcess] = []

    def launch(self) -> ManagerProcess:
        """Starts one more, and returns at once."""
        work = self._work / f"manager-{len(self._all)}"
        manager = ManagerProcess(work, self._kubeconfig, lease_namespace=NAMESPACE)
        self._all.append(manager)
        manager.launch()
        return manager

    def lead(self) -> ManagerProcess:
        """Starts one and returns when it leads and has tried every pod that is there."""
        manager = self.launch()
        manager.wait_until_it_leads()
        return manager

    def succeed(self, killed: ManagerProcess) -> ManagerProcess:
        """Starts the next one, which need not wait for the lease of one that is certainly dead."""
        assert not killed.is_running
        self.drop_lease()
        return self.launch()

    def supervise(self) -> None:
        """Starts the next one if the last one ended, as a supervisor does; it must have said why in one line."""
        last = self._all[-1]
        if not last.is_running:
            assert last.ended() == 1
            assert "Traceback" not in last.log.read_text()
            self.launch()

    @property
    def last_words(self) -> list[str]:
        """The last line that each of those said that ended."""
        return [one.log.read_text().splitlines()[-1] for one in self._all if not one.is_running]

    def holder(self) -> str:
        """Who has the lease, empty if there is none."""
        lease = self._ask("GET") or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", ""))

    def drop_lease(self) -> None:
        """Lets whoever stands by lead at once."""
        self._ask("DELETE")

    def _ask(self, method: str) -> Any:
        """What the server answers for the lease, None if there is none."""
        try:
            return self._cluster.server.ask(method, _LEASE)
        except HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return None

    def kill_all(self) -> None:
        for manager in self._all:
            if manager.is_running:
                manager.kill()
        self.drop_lease()
