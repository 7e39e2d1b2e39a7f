"""The guard of the real host's kernel finds what is this project's, and nothing of other programs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL
from cni_contrail.datapath.uplink_rules import alias_of
from cni_contrail.interfaces.names import host_name
from tests.e2e.real_host_kernel import kernel_objects
from tests.support.netns import Netns

HOST_END = host_name("c" * 64, "eth0")


@pytest.fixture
def host(make_netns: Callable[[str], Netns]) -> Netns:
    """A namespace in place of the real host's, with a link of another program."""
    host = make_netns("host")
    host.ip("link", "add", "eth0", "type", "bridge")
    host.ip("link", "set", "eth0", "up")
    return host


@pytest.fixture
def added(host: Netns, tmp_path: Path) -> Callable[..., set[str]]:
    """Runs commands on the host and returns what the guard has found since."""

    def run(*commands: str) -> set[str]:
        with host.inside():
            before = kernel_objects(str(tmp_path))
        for command in commands:
            assert host.run("sh", "-ec", command).stderr == ""
        with host.inside():
            return kernel_objects(str(tmp_path)) - before

    return run


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (f"ip link add {HOST_END} type bridge", f"link {HOST_END}"),
        ("ip link add contrail.0 type bridge", "link contrail.0"),
        ("ip link add ctup-7 type bridge", "link ctup-7"),
        (f"ip link add renamed type bridge; ip link set renamed alias '{alias_of(7)}'", "link renamed"),
        (f"ip route add 10.7.0.2 dev eth0 proto {ROUTE_PROTOCOL}", "route 10.7.0.2 dev eth0"),
        (f"ip -6 route add unreachable fd07::/122 proto {ROUTE_PROTOCOL}", "route fd07::/122 dev lo"),
        ("ip rule add from 10.7.0.2 lookup 1001 priority 1001", "rule 1001 from 10.7.0.2"),
        ("ip -6 rule add from fd07::2 lookup 1001 priority 1001", "rule 1001 from fd07::2"),
        ("nft add table inet contrail-uplink", "table inet contrail-uplink"),
        ("nft add table bridge contrail", "table bridge contrail"),
        ("echo 1 > /proc/sys/net/ipv4/ip_forward", "setting net/ipv4/ip_forward is 1"),
        ("echo 2 > /proc/sys/net/ipv6/conf/eth0/accept_ra", "setting net/ipv6/conf/eth0/accept_ra is 2"),
        ("echo 0 > /proc/sys/net/ipv6/conf/default/accept_ra", "setting net/ipv6/conf/default/accept_ra is 0"),
    ],
)
def test_what_a_datapath_leaves_is_found(added: Callable[..., set[str]], command: str, found: str) -> None:
    assert added(command) == {found}


def test_namespaces_of_networks_are_found(added: Callable[..., set[str]], tmp_path: Path) -> None:
    assert added(f"touch {tmp_path}/contrail-7 {tmp_path}/contrail-demo-node {tmp_path}/other") == {
        "namespace contrail-7"
    }


@pytest.mark.parametrize(
    "command",
    [
        "ip link add tap0 type bridge",
        "ip link add vnet7 type bridge; ip link set vnet7 alias other",
        "ip route add 10.7.0.0/24 dev eth0 proto static; ip -6 route add fd07::/64 dev eth0 proto bird",
        "ip rule add from 10.7.0.2 lookup 51820 priority 1001",
        "nft add table inet filter; nft add table ip contrailed",
        "echo 1 > /proc/sys/net/ipv4/conf/eth0/rp_filter",
    ],
)
def test_what_other_programs_add_is_not_found(added: Callable[..., set[str]], command: str) -> None:
    assert added(command) == set()


def test_what_has_gone_is_not_found(added: Callable[..., set[str]], host: Netns) -> None:
    host.ip("link", "add", "ctup-7", "type", "bridge")
    assert added("ip link delete ctup-7") == set()
