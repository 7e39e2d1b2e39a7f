"""Manager processes, and a supervisor that restarts them."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster
from tests.support.cluster_processes import ManagerProcess

_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/contrail-manager"


class Managers:
    """Manager processes of one cluster, by default with a token of the manager's service account."""

    def __init__(self, cluster: Cluster, work: Path, kubeconfig: Path | None = None) -> None:
        self._cluster = cluster
        self._work = work
        self._kubeconfig = kubeconfig or cluster.kubeconfig("contrail-manager")
        self._all: list[ManagerProcess] = []

    def launch(self) -> ManagerProcess:
        """Starts another manager without waiting."""
        work = self._work / f"manager-{len(self._all)}"
        manager = ManagerProcess(work, self._kubeconfig, lease_namespace=NAMESPACE)
        self._all.append(manager)
        manager.launch()
        return manager

    def lead(self) -> ManagerProcess:
        """Starts a manager and waits until it leads and has processed every pod."""
        manager = self.launch()
        manager.wait_until_it_leads()
        return manager

    def succeed(self, killed: ManagerProcess) -> ManagerProcess:
        """Starts the next manager; deletes the lease of the killed one, so that it need not expire."""
        assert not killed.is_running
        self.drop_lease()
        return self.launch()

    def supervise(self) -> None:
        """Restarts an ended manager, as a supervisor does; it must have logged its reason in one line."""
        if not self.last.is_running:
            assert self.last.ended() == 1
            assert "Traceback" not in self.last.log.read_text()
            self.launch()

    @property
    def last(self) -> ManagerProcess:
        """The one that was started last."""
        return self._all[-1]

    @property
    def last_log_lines(self) -> list[str]:
        """The last log line of each ended manager."""
        return [one.log.read_text().splitlines()[-1] for one in self._all if not one.is_running]

    def holder(self) -> str:
        """Holder of the lease, empty without a lease."""
        lease = self._ask("GET") or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", ""))

    def drop_lease(self) -> None:
        """Deletes the lease, so that a standby leads at once."""
        self._ask("DELETE")

    def _ask(self, method: str) -> Any:
        """The server's response for the lease, None if it does not exist."""
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
