"""Renewal of certificates and tokens, of the API server and of its clients, while the programs run.

The manager has a client certificate, as outside the cluster, and the agent a token, as kubelet mounts it. The token is
bound to a pod: the server rejects it once the pod is gone, with the same response as an expired one.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, wait_until
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import NODE, PodLoad
from tests.support.cluster_processes import AgentProcess, ManagerProcess
from tests.support.loopback_proxy import Forwarder, forwarding
from tests.support.real_apiserver.certificates import create_key, replace, replace_certificate
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver

MANAGER = f"/CN=system:serviceaccount:{NAMESPACE}:contrail-manager"


class Files:
    """The manager's client certificate, the only one that the server trusts, and the agent's token."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate, self.key, self.token = (folder / name for name in ("manager.crt", "manager.key", "token"))
        create_key(self.key)
        self.renew_certificate()

    def renew_certificate(self, *, days: int = 1) -> None:
        """Replaces the certificate, which has expired if `days` is negative; the server rejects the previous one."""
        replace_certificate(self.certificate, self.key, subject=MANAGER, days=days)

    def renew_token(self, cluster: Cluster) -> None:
        """Replaces the token."""
        replace(self.token, cluster.agent_token(NODE).encode())

    def expire_token(self, server: ApiServer) -> None:
        """Deletes the token's pod and waits until the server rejects the token: it caches valid ones for 10 s."""
        server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/contrail-agent-{NODE}?gracePeriodSeconds=0")
        wait_until(lambda: is_rejected(server, self.token.read_text()), what="the token is rejected")

    def kubeconfig(self, name: str, server: ApiServer, listener: socket.socket, user: dict[str, Path]) -> Path:
        """Writes a kubeconfig for the server at the listener's address."""
        document = json.loads(server.kubeconfig().read_text())
        document["clusters"][0]["cluster"]["server"] = "https://{}:{}".format(*listener.getsockname())
        document["users"][0]["user"] = {key: str(path) for key, path in user.items()}
        file = self._folder / name
        file.write_text(json.dumps(document))
        return file


def is_rejected(server: ApiServer, token: str) -> bool:
    try:
        server.ask("GET", "/api", token=token)
    except HTTPError as error:
        error.close()
        return error.code == 401
    return False


def renew_certificate_of(server: ApiServer) -> None:
    """Replaces the server's certificate, which is its own authority, and waits until new connections get it."""
    replace_certificate(server.authority, server.authority.with_suffix(".key"), subject="/CN=kube-apiserver")
    url, renewed = urlsplit(server.url), server.authority.read_text().split()
    address = url.hostname or "", url.port or 0
    wait_until(lambda: ssl.get_server_certificate(address).split() == renewed, what="the certificate is served")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory, files: Files) -> Iterator[ApiServer]:
    clients = f"--client-ca-file={files.certificate}"
    with serve_real_apiserver(tmp_path_factory.mktemp("kubernetes"), clients) as server:
        yield server


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Where manager and agent connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
async def forwarder(cluster: Cluster, listener: socket.socket) -> AsyncIterator[Forwarder]:
    """The connections of manager and agent to the server; both connect again after they were closed."""
    async with forwarding(listener, urlsplit(cluster.server.url).port or 0) as forwarder:
        yield forwarder


@pytest.fixture
async def managers(
    cluster: Cluster, files: Files, tmp_path: Path, listener: socket.socket, forwarder: Forwarder
) -> AsyncIterator[Managers]:
    """Managers with the client certificate; one leads."""
    user = {"client-certificate": files.certificate, "client-key": files.key}
    managers = Managers(cluster, tmp_path, files.kubeconfig("manager", cluster.server, listener, user))
    try:
        await asyncio.to_thread(managers.lead)
        yield managers
    finally:
        managers.kill_all()


@pytest.fixture
async def agent(
    cluster: Cluster, files: Files, tmp_path: Path, listener: socket.socket, managers: Managers
) -> AsyncIterator[AgentProcess]:
    """The ready agent of a node, with the token; a manager has created the CRDs."""
    files.renew_token(cluster)
    kubeconfig = files.kubeconfig("agent", cluster.server, listener, {"tokenFile": files.token})
    agent = AgentProcess(tmp_path / "agent", kubeconfig, node=NODE)
    agent.launch()
    try:
        await asyncio.to_thread(agent.wait_until_ready)
        yield agent
    finally:
        agent.kill()


async def check_a_new_pod(agent: AgentProcess, pod_load: PodLoad) -> None:
    """Creates a pod with two networks and waits until the agent serves its interfaces."""
    await pod_load.add_networks()
    await pod_load.add(["new"])
    await pod_load.wait_until_reconciled()
    assert len(await asyncio.to_thread(agent.interfaces, pod_load.namespace, "new", wait=10)) == 3


async def test_renewed_certificates_are_used_without_a_restart(
    cluster: Cluster, files: Files, forwarder: Forwarder, managers: Managers, agent: AgentProcess, pod_load: PodLoad
) -> None:
    """The server rejects the previous client certificate, and the previous authority does not verify the server."""
    files.renew_certificate()
    await asyncio.to_thread(renew_certificate_of, cluster.server)
    await forwarder.close_connections()
    await check_a_new_pod(agent, pod_load)
    assert managers.last.is_running


async def test_expired_credentials_are_reported_until_they_are_renewed(
    cluster: Cluster, files: Files, forwarder: Forwarder, managers: Managers, agent: AgentProcess, pod_load: PodLoad
) -> None:
    """The leader loses its lease and ends; the manager that its supervisor starts leads after the renewal."""
    files.renew_certificate(days=-1)
    rejected = f"users 'user': client-certificate: {files.certificate}"
    await asyncio.to_thread(files.expire_token, cluster.server)
    await forwarder.close_connections()
    await asyncio.to_thread(agent.wait_until, reports(agent, f"tokenFile: {files.token}"), what="reported")
    assert await asyncio.to_thread(managers.last.ended) == 1
    assert "lease contrail-manager: lost: " in managers.last_log_lines[0]
    assert rejected in managers.last_log_lines[0]
    managers.supervise()
    await asyncio.to_thread(managers.last.wait_until, reports(managers.last, rejected), what="reported")
    files.renew_certificate()
    files.renew_token(cluster)
    await asyncio.to_thread(managers.last.wait_until_it_leads)
    await asyncio.to_thread(agent.wait_until_ready)
    await check_a_new_pod(agent, pod_load)


def reports(process: ManagerProcess | AgentProcess, problem: str) -> Callable[[], bool]:
    """Whether it is not ready, and says why there and in its log."""
    return lambda: problem in str(process.ask("/readyz")) and problem in process.log.read_text()
