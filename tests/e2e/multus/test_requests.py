"""Addresses and MACs that a pod asks for: allotted by the manager, and told to the plugin by Multus once more."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.e2e.interfaces import Interface, interfaces
from tests.e2e.multus.attachments import check_attachment, told
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet

NUMBERS = count(1)


@pytest.fixture
def number() -> Iterator[int]:
    """No two pods ask for the same."""
    yield next(NUMBERS)


def asked(number: int, *, prefix: str = "") -> dict[str, Any]:
    return {
        "mac": f"02:00:00:AA:00:{number:02x}",
        "ips": [f"10.12.200.{number}{prefix and '/16'}", f"fd00:12::c8:{number:x}{prefix and '/64'}"],
    }


def given(number: int) -> Interface:
    addresses = {f"10.12.200.{number}/16", f"fd00:12::c8:{number:x}/64"}
    return Interface(f"02:00:00:aa:00:{number:02x}", 1500, frozenset(addresses))


@pytest.mark.parametrize("way", ["plain", "with prefix", "as arguments"])
def test_they_are_what_the_interface_gets(kubelet: Kubelet, cluster: Cluster, number: int, way: str) -> None:
    wishes = asked(number, prefix="yes" if way == "with prefix" else "")
    element = {"cni-args": {**wishes, "colour": "red"}} if way == "as arguments" else wishes
    sandbox = kubelet.sandbox([{"name": "blue"}, {"name": "green", **element}, {"name": "green"}])
    sandbox.add().succeeded()
    assert interfaces(sandbox.ip)["net2"] == given(number)
    assert told(cluster, sandbox)[2][1:4] == ("net2", given(number).mac, set(wishes_plain(number)))
    check_attachment(sandbox, "net2").succeeded()


def test_they_are_told_to_networks_that_declare_no_capability(kubelet: Kubelet, number: int) -> None:
    element = {"name": "bare", "mac": f"02:00:00:aa:01:{number:02x}", "ips": [f"10.16.200.{number}"]}
    sandbox = kubelet.sandbox([element])
    sandbox.add().succeeded()
    found = interfaces(sandbox.ip)["net1"]
    assert found == Interface(f"02:00:00:aa:01:{number:02x}", 1500, frozenset({f"10.16.200.{number}/16"}))


def wishes_plain(number: int) -> list[str]:
    return [f"10.12.200.{number}", f"fd00:12::c8:{number:x}"]
