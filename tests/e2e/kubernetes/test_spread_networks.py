"""A network whose pods come to more nodes than the manager routes without blocks, on a real API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_processes import ManagerProcess, running
from tests.support.manifests import nad, pod
from tests.support.real_apiserver.server import ApiServer

_OURS = "/apis/opencontrail.org/v1alpha1"
_NETWORK = "k8s-wide-pod-network"
_MOST = 2


@pytest.fixture
def manager(api_server: ApiServer, tmp_path: Path) -> Iterator[ManagerProcess]:
    """A manager with network slices and a low limit."""
    made = ManagerProcess(tmp_path / "manager", api_server.kubeconfig(), network_slices=True, l3_beyond_nodes=_MOST)
    with running(made):
        made.wait_until_it_leads()
        yield made


def _spec(node: str) -> dict[str, Any]:
    return {"nodeName": node, "containers": [{"name": "main", "image": "none.example/none"}]}


def bind_pod(server: ApiServer, namespace: str, number: int) -> None:
    """Creates a pod in the network, on a node of its own."""
    node = f"spread-{number}"
    server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    addresses = [{"type": "InternalIP", "address": f"192.0.2.{number}"}]
    server.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"addresses": addresses}})
    document = {**pod(f"on-{node}", networks="wide", namespace=namespace), "spec": _spec(node)}
    server.ask("POST", f"/api/v1/namespaces/{namespace}/pods", document)


def modes(server: ApiServer, kind: str, namespace: str) -> list[str]:
    """The forwarding modes in the network of the namespace: of its slices, or of the interfaces of its pods."""
    items: list[dict[str, Any]] = server.ask("GET", f"{_OURS}/{kind}")["items"]
    specs = [item["spec"] for item in items]
    if kind == "virtualmachines":
        specs = [each for spec in specs for each in spec.get("interfaces", ())]
    found = [spec for spec in specs if spec["network"][1:] == [f"k8s-{namespace}", _NETWORK]]
    return sorted(spec.get("forwardingMode", "l2_l3") for spec in found)


def test_a_network_on_more_nodes_than_configured_becomes_l3_with_an_event(
    api_server: ApiServer, namespace: str, manager: ManagerProcess
) -> None:
    nads = f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions"
    api_server.ask("POST", nads, nad("wide", cidr="10.5.0.0/16", namespace=namespace))
    for number in range(1, _MOST + 1):
        bind_pod(api_server, namespace, number)
    bridged = ["l2_l3"] * _MOST
    manager.wait_until(lambda: modes(api_server, "networkslices", namespace) == bridged, what="two slices")
    bind_pod(api_server, namespace, _MOST + 1)
    manager.wait_until(lambda: modes(api_server, "networkslices", namespace) == ["l3"] * (_MOST + 1), what="routed")
    bind_pod(api_server, namespace, _MOST + 2)
    manager.wait_until(
        lambda: modes(api_server, "virtualmachines", namespace) == [*bridged, "l2_l3", "l3"], what="a routed pod"
    )
    events = manager.items("events", f"?namespace={namespace}&name=wide")
    (event,) = [each for each in events if each["reason"] == "NetworkRouted"]
    assert f"has pods on {_MOST + 1} nodes" in event["message"]
