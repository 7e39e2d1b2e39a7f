"""Addresses and MACs requested by a pod: allocated by the manager, and passed to the plugin again by Multus."""

from collections.abc import Callable
from itertools import count

import pytest

from tests.e2e.interfaces import Interface, interfaces
from tests.e2e.multus.attachments import check_attachment, network_status
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet

_NUMBERS = count(1)


@pytest.fixture
def number() -> int:
    """A number unique per test, so that no two pods request the same address."""
    return next(_NUMBERS)


def plain(number: int) -> list[str]:
    return [f"10.12.{100 + number}.7", f"fd00:12::{number:x}:7"]


def with_prefix(number: int) -> list[str]:
    return [f"10.12.{100 + number}.7/16", f"fd00:12::{number:x}:7/64"]


@pytest.mark.parametrize("as_arguments", [False, True], ids=["as keys", "as arguments"])
@pytest.mark.parametrize("addresses", [plain, with_prefix])
def test_the_interface_gets_the_requested_address_and_mac(
    kubelet: Kubelet, cluster: Cluster, number: int, addresses: Callable[[int], list[str]], as_arguments: bool
) -> None:
    requested = {"mac": f"02:00:00:AA:00:{number:02x}", "ips": addresses(number)}
    element = {"cni-args": {**requested, "colour": "red"}} if as_arguments else requested
    sandbox = kubelet.sandbox([{"name": "blue"}, {"name": "green", **element}, {"name": "green"}])
    sandbox.add().succeeded()
    mac = f"02:00:00:aa:00:{number:02x}"
    assert interfaces(sandbox.ip)["net2"] == Interface(mac, 1500, frozenset(with_prefix(number)))
    assert network_status(cluster, sandbox)[2] == ("demo/green", "net2", mac, set(plain(number)), False)
    check_attachment(sandbox, "net2").succeeded()


def test_requests_reach_networks_without_declared_capabilities(kubelet: Kubelet, number: int) -> None:
    mac, address = f"02:00:00:aa:01:{number:02x}", f"10.16.{100 + number}.7"
    sandbox = kubelet.sandbox([{"name": "bare", "mac": mac, "ips": [address]}])
    sandbox.add().succeeded()
    assert interfaces(sandbox.ip)["net1"] == Interface(mac, 1500, frozenset({f"{address}/16"}))
