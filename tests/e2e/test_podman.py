"""Containers started by podman on the networks; a container's name is a pod of namespace `default`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.host import Host
from tests.e2e.interfaces import default_gateways, interfaces
from tests.e2e.node import NETWORK, MakePod, Node
from tests.e2e.podman import Podman

PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}


@pytest.fixture(scope="module", autouse=True)
def podman(host: Host, busybox: Path) -> Podman:
    return Podman(host, busybox)


@pytest.fixture
def web(make_pod: MakePod, podman: Podman) -> Iterator[str]:
    """Name of a container with interfaces eth0, eth1 and front; a test may start it."""
    yield make_pod("web", networks="blue, green@front")
    podman.remove("web")


@pytest.fixture
def delegated(node: Node) -> Iterator[None]:
    """Configures delegated mode: one interface per call, and a network configuration per network of the pod."""
    blue, green = (node.network(name, mode="delegated") for name in ("blue", "green"))
    with node.plugin_settings(mode="delegated"), blue, green:
        yield


def test_a_container_has_every_interface_of_its_pod(podman: Podman, node: Node, web: str) -> None:
    podman.start(web)
    allocated = node.allocated(web)
    assert list(allocated) == ["eth0", "eth1", "front"]
    assert interfaces(podman.ip(web)) == allocated
    assert default_gateways(podman.ip(web)) == {"10.32.0.1": "eth0", "fd00:10::1": "eth1"}
    assert len(node.plugged(web)) == 3


def test_podman_reports_the_primary_address(podman: Podman, node: Node, web: str) -> None:
    podman.start(web)
    eth0 = node.allocated(web)["eth0"]
    known = podman.networks(web)[NETWORK]
    assert {f"{known['IPAddress']}/{known['IPPrefixLen']}"} == eth0.addresses
    assert known["MacAddress"] == eth0.mac
    assert known["Gateway"] == "10.32.0.1"


def test_the_user_names_the_primary_interface(podman: Podman, web: str) -> None:
    podman.start(web, f"--network={NETWORK}:interface_name=uplink")
    assert list(interfaces(podman.ip(web))) == ["uplink", "eth1", "front"]


def test_allocated_address_and_mac_can_be_requested(podman: Podman, node: Node, web: str) -> None:
    eth0 = node.allocated(web)["eth0"]
    (address,) = (each.partition("/")[0] for each in eth0.addresses)
    podman.start(web, f"--network={NETWORK}:mac={eth0.mac},ip={address}")
    assert interfaces(podman.ip(web))["eth0"] == eth0


def test_another_mac_is_rejected_with_both_values(podman: Podman, node: Node, web: str) -> None:
    message = podman.rejected(web, f"--network={NETWORK}:mac=02:00:00:00:00:99")
    assert f"MAC 02:00:00:00:00:99 is requested, but the agent allocated {node.allocated(web)['eth0'].mac}" in message


def test_another_address_is_rejected_with_both_values(podman: Podman, node: Node, web: str) -> None:
    message = podman.rejected(web, f"--network={NETWORK}:ip=10.32.7.7")
    (address,) = (each.partition("/")[0] for each in node.allocated(web)["eth0"].addresses)
    assert f"address 10.32.7.7 is requested, but the agent allocated {address}" in message


def test_a_container_of_an_unknown_pod_is_rejected_with_its_name(podman: Podman, node: Node) -> None:
    with node.plugin_settings(poll_timeout=0.1, poll_retries=2):
        assert "has no interfaces for pod default/stranger" in podman.rejected("stranger")


def test_portmap_behind_the_plugin_publishes_a_port(podman: Podman, node: Node, web: str) -> None:
    with node.network("published", PORTMAP):
        podman.start(web, "--network=published", "--publish=18080:80")
        (address,) = (each.partition("/")[0] for each in node.allocated(web)["eth0"].addresses)
        assert f"--to-destination {address}:80" in node.host.run("iptables-save", "-t", "nat")
        podman.remove(web)


def test_a_container_that_ends_by_itself_is_detached(podman: Podman, node: Node, web: str) -> None:
    ended = podman.run(web, "ip", "addr")
    assert ended.returncode == 0, ended.stderr
    assert interfaces(lambda *_: ended.stdout) == node.allocated(web)
    assert node.plugged(web) == []


def test_a_killed_container_is_detached(podman: Podman, node: Node, web: str) -> None:
    podman.start(web)
    podman("kill", "--signal=KILL", web)
    node.wait_until(lambda: node.plugged(web) == [], what="detached")


def test_a_restarted_container_gets_the_same_interfaces(podman: Podman, node: Node, web: str) -> None:
    podman.start(web)
    podman("restart", "--time=0", web)
    assert interfaces(podman.ip(web)) == node.allocated(web)


def test_several_containers_run_at_the_same_time(podman: Podman, node: Node, make_pod: MakePod) -> None:
    names = [make_pod(f"web-{number}", networks="blue, blue") for number in range(3)]
    for name in names:
        podman.start(name)
    assert [interfaces(podman.ip(name)) for name in names] == [node.allocated(name) for name in names]
    for name in names:
        podman.remove(name)


def test_networks_are_attached_one_by_one_in_delegated_mode(
    podman: Podman, node: Node, web: str, delegated: None
) -> None:
    names = {NETWORK: "eth0", "blue": "eth1", "green": "front"}  # otherwise podman orders them at random
    podman.start(web, *(f"--network={network}:interface_name={name}" for network, name in names.items()))
    assert interfaces(podman.ip(web)) == node.allocated(web)
    podman.remove(web)
