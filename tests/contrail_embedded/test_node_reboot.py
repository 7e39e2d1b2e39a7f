"""A reboot: all of the kernel's state is gone, the store is not. Networks are made again, and pods by kubelet."""

from collections.abc import Iterator

import pytest

from tests.support.datapath_node import ConnectedPod, DatapathNode, datapath_node
from tests.support.echo import reaches
from tests.support.netns import Netns

GATEWAY = "10.1.0.1"


@pytest.fixture
def datapath() -> Iterator[DatapathNode]:
    with datapath_node() as node:
        yield node


@pytest.fixture
def booted() -> Iterator[Netns]:
    """The network namespace of the node after its reboot; it replaces the one before."""
    namespace = Netns("booted")
    yield namespace
    namespace.delete()


def test_networks_come_back_from_the_store_and_pods_with_their_next_add(datapath: DatapathNode, booted: Netns) -> None:
    with datapath.attached("a"), datapath.attached("b"):
        vni = datapath.vni
        datapath.manager.kill()
        datapath.daemon.kill()
    datapath.lose_kernel_state()
    with booted.inside():
        datapath.start()  # ready, although two pods of the store have lost their ports
        assert datapath.manager.get("/readyz") is not None
        datapath.manager.wait_until(lambda: datapath.networks.namespaces.existing() == {vni}, what="made again")
        datapath.manager.wait_until(lambda: _is_missing(datapath, vni, 2), what="reported")
        assert f"{GATEWAY}/16" in datapath.networks.run(vni, "ip", "address", "show", "dev", "br0")
        with datapath.attached("a") as first:
            datapath.manager.wait_until(lambda: _is_missing(datapath, vni, 1), what="reported: b is not waited for")
            with datapath.attached("b") as second:
                _check_traffic(first, second)
                datapath.manager.wait_until(lambda: _missing(datapath) == {}, what="complete")
                datapath.manager.wait_until(lambda: datapath.manager.get("/readyz") is not None, what="ready")


def _check_traffic(first: ConnectedPod, second: ConnectedPod) -> None:
    for address in (*second.addresses, GATEWAY):
        assert reaches(first.namespace, address), address


def _is_missing(node: DatapathNode, vni: int, ports: int) -> bool:
    return {key: len(links) for key, links in _missing(node).items()} == {"0": ports, str(vni): ports}


def _missing(node: DatapathNode) -> dict[str, list[str]]:
    report = node.report()["report"] or {"missing": {"no report": []}}
    found: dict[str, list[str]] = report["missing"]
    return found
