"""One address serves the manager's and the agent's API; SIGTERM stops everything in time."""

import contextlib
import http.client
import json
import resource
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded_process import EmbeddedProcess
from tests.support.free_port import free_port
from tests.support.manifests import nad, pod, write


def test_both_apis_share_an_address_and_the_agent_has_its_socket(node: EmbeddedProcess) -> None:
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
    node.start()
    assert node.pod_states() == {"demo/web": "Ready"}
    (_, second) = node.get("/vm-cfg/k8s__demo__web")
    assert second["ip-address"] == "10.1.0.2"
    assert _over_socket(node.socket, "/vm-cfg/k8s__demo__web") == node.get("/vm-cfg/k8s__demo__web")
    assert node.socket.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("options", "status"), [([], 403), (["--tcp-writes"], 200)])
def test_writes_over_tcp_are_off_by_default(node: EmbeddedProcess, options: list[str], status: int) -> None:
    node.command = [*node.command, *options]
    node.start()
    connection = http.client.HTTPConnection(node.listen, timeout=10)
    connection.request("DELETE", "/vm/aaaaaaaa-0000-4000-8000-000000000001")
    assert connection.getresponse().status == status
    connection.close()


def test_status_endpoints_are_served_on_metrics_listen(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    config = tmp_path / "manager.yaml"
    config.write_text(f"metrics-listen: {address}\n")
    node = EmbeddedProcess(tmp_path, options=["--config", str(config)])
    node.start()
    try:
        assert b"contrail" in _metrics(address)
        node.listen = address
        assert node.get("/healthz")["healthy"]
        assert node.get("/v1/pods") is None
    finally:
        assert node.stop() == 0


def test_a_watch_sees_changed_manifests_and_the_end_of_the_node(node: EmbeddedProcess) -> None:
    node.start()
    with urllib.request.urlopen(f"http://{node.listen}/v1/watch?kind=pods", timeout=20) as stream:
        messages = (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))
        assert [next(messages)["type"] for _ in range(2)] == ["RESET", "SYNCED"]
        write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
        ready = next(each for each in messages if each["object"]["state"] == "Ready")
        assert len(ready["object"]["machine"]["interfaces"]) == 2
        (node.manifests / "all.yaml").unlink()
        assert next(each for each in messages if each["type"] == "DELETED")["object"]["name"] == "web"
        assert node.stop() == 0
        assert [each["message"] for each in messages] == ["the manager is stopping"]


def test_it_stops_in_time_while_clients_wait(node: EmbeddedProcess) -> None:
    node.start()
    answers: list[int] = []
    waiting = [threading.Thread(target=_wait_for_a_pod, args=(node.listen, answers)) for _ in range(20)]
    for thread in waiting:
        thread.start()
    node.wait_until(lambda: b" 20.0" in _metric(node, b"waiting"), what="waiting")
    began = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - began < 5
    for thread in waiting:
        thread.join(5)
    assert len(answers) == 20, "each client got a response or a closed connection"


def _metric(node: EmbeddedProcess, name: bytes) -> bytes:
    lines = _metrics(node.listen).splitlines()
    return b"\n".join(line for line in lines if name in line and not line.startswith(b"#"))


def _metrics(listen: str) -> bytes:
    connection = http.client.HTTPConnection(listen, timeout=5)
    connection.request("GET", "/metrics")
    body = connection.getresponse().read()
    connection.close()
    return body


def _wait_for_a_pod(listen: str, answers: list[int]) -> None:
    connection = http.client.HTTPConnection(listen, timeout=20)
    try:
        connection.request("GET", "/vm-cfg/k8s__demo__never?wait=30")
        answers.append(connection.getresponse().status)
    except (OSError, http.client.HTTPException):
        answers.append(0)
    finally:
        connection.close()


def _over_socket(path: Path, target: str) -> object:
    connection = http.client.HTTPConnection("localhost", timeout=5)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("GET", target)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


class TestTooManyClients:
    """A process that may open 1024 files, and clients that would take them all."""

    @pytest.fixture
    def metrics_listen(self) -> str:
        return f"127.0.0.1:{free_port()}"

    @pytest.fixture
    def node(self, tmp_path: Path, metrics_listen: str) -> Iterator[EmbeddedProcess]:
        config = tmp_path / "manager.yaml"
        config.write_text(f"metrics-listen: {metrics_listen}\n")
        node = EmbeddedProcess(tmp_path, options=["--config", str(config)])
        node.command = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *node.command]
        node.start()
        yield node
        node.stop()

    @pytest.fixture(autouse=True)
    def files(self) -> Iterator[None]:
        """Raises the file limit for the clients."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    def test_that_wait_or_send_incomplete_heads_stop_neither_probes_nor_the_unix_socket(
        self, node: EmbeddedProcess, metrics_listen: str
    ) -> None:
        write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
        node.wait_until(lambda: node.pod_states() == {"demo/web": "Ready"}, what="ready")
        interfaces = node.get("/vm-cfg/k8s__demo__web")
        waiting = b"GET /vm-cfg/nobody?wait=60 HTTP/1.1\r\nHost: x\r\n\r\n"
        with contextlib.ExitStack() as clients:
            for address, number, data in ((node.listen, 300, waiting), (metrics_listen, 1100, b"GET /metr")):
                host, _, port = address.partition(":")
                for _ in range(number):
                    client = clients.enter_context(socket.create_connection((host, int(port)), timeout=10))
                    client.sendall(data)
            for address in (node.listen, metrics_listen):
                for path in ("/healthz", "/readyz"):
                    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
                        assert answer.status == 200
            assert _over_socket(node.socket, "/vm-cfg/k8s__demo__web") == interfaces
        log = node.log.read_text()
        assert "Traceback" not in log
        assert len(log.splitlines()) < 50
