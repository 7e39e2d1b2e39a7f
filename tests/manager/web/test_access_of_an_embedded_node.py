"""The listener of an embedded node: what answers to a rebound name, and that probes by address go on."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

CHECKED = ("/", "/v1/pods", "/metrics", "/healthz", "/readyz", "/openapi.json")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedProcess]:
    node = EmbeddedProcess(tmp_path_factory.mktemp("node"))
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
    node.start()
    yield node
    node.kill()


def status_of(node: EmbeddedProcess, path: str, host: str) -> int:
    """The status of a request with this `Host`."""
    connection = http.client.HTTPConnection(node.listen, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("path", CHECKED)
def test_a_rebound_name_reads_nothing_of_the_listener(node: EmbeddedProcess, path: str) -> None:
    assert status_of(node, path, "rebound.example:8083") == 421


@pytest.mark.parametrize("path", CHECKED)
@pytest.mark.parametrize("host", ["127.0.0.1:8083", "[::1]:8083", "localhost", "contrail-manager.contrail.svc"])
def test_probes_and_scrapers_by_address_or_service_are_answered(node: EmbeddedProcess, path: str, host: str) -> None:
    assert status_of(node, path, host) == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_probe_without_a_host_is_answered(node: EmbeddedProcess, path: str) -> None:
    host, _, port = node.listen.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"200"


def test_clients_of_the_vrouter_agent_may_send_any_host(node: EmbeddedProcess) -> None:
    assert status_of(node, "/vm-cfg/k8s__demo__web", "rebound.example") == 200
    assert status_of(node, "/gateway", "rebound.example") == 200
