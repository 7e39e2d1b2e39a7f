"""Chains of this plugin and Debian's plugins, in each version of the specification that all of them support.

The other plugins parse the result as their `prevResult` and change the interfaces; CHECK must accept these changes.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.cnitool import Cnitool
from tests.e2e.host import Host
from tests.e2e.interfaces import interfaces
from tests.e2e.node import Node
from tests.e2e.sandbox import Sandbox

CHECKED = ("0.4.0", "1.0.0")
CHAINED = ("0.3.0", "0.3.1", *CHECKED)
ALL = ("0.1.0", "0.2.0", *CHAINED)

TUNING = {
    "type": "tuning",
    "mac": "02:00:00:00:77:01",
    "mtu": 1400,
    "sysctl": {"net.ipv4.conf.eth0.log_martians": "1"},
}
BANDWIDTH = {
    "type": "bandwidth",
    "ingressRate": 8_000_000,
    "ingressBurst": 800_000,
    "egressRate": 8_000_000,
    "egressBurst": 800_000,
}
FIREWALL = {"type": "firewall", "backend": "iptables"}  # supports no version before 0.4.0
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
SBR = {"type": "sbr"}

PORTS = json.dumps({"portMappings": [{"hostPort": 18080, "containerPort": 80, "protocol": "tcp"}]})
NOTHING: Mapping[str, str] = {}


class Chain:
    """A network `chain` for one sandbox; its calls request a published port, for plugins that support it."""

    def __init__(self, cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._cnitool = cnitool
        self._node = node

    @property
    def address(self) -> str:
        """The address of eth0."""
        (address,) = self._node.allocated(self.sandbox.container_id)["eth0"].addresses
        return address.partition("/")[0]

    @contextlib.contextmanager
    def attached(
        self, *behind: Mapping[str, Any], version: str, environment: Mapping[str, str] = NOTHING
    ) -> Iterator[dict[str, Any]]:
        """Runs ADD and yields its result, then runs CHECK (if the version has it, with `environment`) and DEL."""
        with self._node.network("chain", *behind, version=version):
            yield self._cnitool.add(self.sandbox, network="chain", CAP_ARGS=PORTS)
            if version in CHECKED:
                self._cnitool.run("check", self.sandbox, network="chain", CAP_ARGS=PORTS, **environment)
            self._cnitool.run("del", self.sandbox, network="chain", CAP_ARGS=PORTS)


@pytest.fixture
def chain(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> Chain:
    return Chain(cnitool, node, sandbox)


@pytest.fixture
def iptables_alone(host: Host) -> Mapping[str, str]:
    """An environment without `ip6tables`: Debian's `portmap` CHECK searches it for IPv4 rules, too."""
    host.run("mkdir", "-p", "/run/iptables-alone")
    host.run("ln", "-sf", "/usr/sbin/iptables", "/run/iptables-alone/")
    return {"PATH": "/run/iptables-alone"}


@pytest.mark.parametrize("version", ALL)
def test_a_list_with_only_this_plugin(chain: Chain, version: str) -> None:
    with chain.attached(version=version) as result:
        assert result["cniVersion"] == version
        assert list(interfaces(chain.sandbox.ip)) == ["eth0", "eth1", "front"]


@pytest.mark.parametrize("version", CHAINED)
def test_portmap_publishes_a_port_of_the_address(
    chain: Chain, node: Node, iptables_alone: Mapping[str, str], version: str
) -> None:
    with chain.attached(PORTMAP, version=version, environment=iptables_alone):
        assert f"--to-destination {chain.address}:80" in node.host.run("iptables-save", "-t", "nat")


@pytest.mark.parametrize("version", CHAINED)
def test_bandwidth_limits_the_host_end(chain: Chain, node: Node, version: str) -> None:
    with chain.attached(BANDWIDTH, version=version) as result:
        host_end = result["interfaces"][0]["name"]
        assert "tbf" in node.host.run("tc", "qdisc", "show", "dev", host_end)


@pytest.mark.parametrize("version", CHAINED)
def test_tuning_changes_mac_and_mtu(chain: Chain, version: str) -> None:
    with chain.attached(TUNING, version=version) as result:
        assert result["interfaces"][1]["mac"] == TUNING["mac"]
        eth0 = interfaces(chain.sandbox.ip)["eth0"]
        assert (eth0.mac, eth0.mtu) == (TUNING["mac"], TUNING["mtu"])


@pytest.mark.parametrize("version", CHECKED)
def test_firewall_admits_the_address(chain: Chain, node: Node, version: str) -> None:
    with chain.attached(FIREWALL, version=version):
        assert f"-d {chain.address}/32" in node.host.run("iptables-save", "-t", "filter")


@pytest.mark.parametrize("version", CHAINED)
def test_sbr_moves_the_routes_to_its_own_table(chain: Chain, version: str) -> None:
    with chain.attached(SBR, version=version):
        assert f"from {chain.address} lookup 100" in chain.sandbox.ip("rule")
        assert "default via 10.32.0.1" in chain.sandbox.ip("route", "show", "table", "100")


@pytest.mark.parametrize("version", CHECKED)
def test_several_plugins_in_one_chain(chain: Chain, version: str) -> None:
    with chain.attached(TUNING, BANDWIDTH, FIREWALL, SBR, version=version):
        assert list(interfaces(chain.sandbox.ip)) == ["eth0", "eth1", "front"]


def test_check_fails_on_a_change_made_outside_the_chain(chain: Chain, cnitool: Cnitool) -> None:
    with chain.attached(TUNING, version="1.0.0"):
        mac = interfaces(chain.sandbox.ip)["eth1"].mac
        chain.sandbox.ip("link", "set", "eth1", "address", "02:00:00:00:77:02")
        assert "eth1" in cnitool.rejected("check", chain.sandbox, network="chain")
        chain.sandbox.ip("link", "set", "eth1", "address", mac)


def test_a_chain_is_detached_when_the_namespace_is_gone(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    with node.network("chain", BANDWIDTH, FIREWALL, PORTMAP):
        cnitool.add(sandbox, network="chain", CAP_ARGS=PORTS)
        sandbox.remove()
        cnitool.run("del", sandbox, network="chain", CAP_ARGS=PORTS)


def test_del_cleans_up_after_a_later_plugin_failed(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    with node.network("chain", {"type": "tuning", "sysctl": {"net.no.such": "1"}}):
        assert "/proc/sys/net/no/such" in cnitool.rejected("add", sandbox, network="chain")
        cnitool.run("del", sandbox, network="chain")
    assert interfaces(sandbox.ip) == {}
