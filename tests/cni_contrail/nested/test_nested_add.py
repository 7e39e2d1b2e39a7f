"""ADD in nested mode: macvlans over shared VLAN links."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from cni_contrail.interfaces.names import vlan_link_name
from tests.cni_contrail.conftest import until
from tests.cni_contrail.nested.conftest import Nested, vlan_links
from tests.support.kernel_state import address_texts, addresses, defaults, link, link_local, read_sysctl
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import NO_VLAN, ScriptedAgent, ScriptedNodeAgent, VrouterAgent

VLAN_100 = vlan_link_name("eth0", 100)
DELEGATED = {"mode": "delegated"}


def echo(client: Netns, server: Netns, address: str) -> bytes:
    """Sends a datagram to the server's address and returns the answer."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with server.inside():
        receiver = socket.socket(family, socket.SOCK_DGRAM)
    with client.inside():
        sender = socket.socket(family, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((address, 7))
        for each in (receiver, sender):
            each.settimeout(10)
        sender.sendto(b"hello", (address, 7))
        receiver.sendto(*receiver.recvfrom(100))
        return sender.recv(100)


def settings_of(node: Netns, name: str) -> dict[str, Any]:
    shown = {key: link(node, name).get(key) for key in ("ifindex", "flags", "mtu", "address", "ifalias", "group")}
    sysctls = ("ipv4/conf/{}/arp_ignore", "ipv4/conf/{}/rp_filter", "ipv6/conf/{}/disable_ipv6")
    return {**shown, **{key: read_sysctl(node, f"net/{key.format(name)}") for key in sysctls}}


def test_each_interface_is_a_macvlan_over_its_vlan(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns, nested: Nested
) -> None:
    vmis = nested(100, 200)
    result = plugin.add(pod).succeeded().document
    assert sandbox.links() == ["eth0", "eth1"]
    for position, vlan in enumerate((100, 200)):
        interface = link(sandbox, f"eth{position}")
        carrier = link(node, vlan_link_name("eth0", vlan))
        assert interface["linkinfo"]["info_kind"] == "macvlan"
        assert interface["linkinfo"]["info_data"]["mode"] == "vepa"
        assert interface["link_index"] == carrier["ifindex"]
        assert (interface["address"], interface["mtu"]) == (vmis[position].mac, 1400)
        assert carrier["linkinfo"]["info_data"]["id"] == vlan
        assert carrier["linkinfo"]["info_data"]["protocol"] == "802.1Q"
        assert carrier["link"] == "eth0"
        assert address_texts(sandbox, f"eth{position}") == [
            f"10.1.{position}.5/24",
            f"fd00:1:{position + 1}::5/64",
        ]
    assert [each["dev"] for version in (4, 6) for each in defaults(sandbox, version=version)] == ["eth0", "eth0"]
    assert result["interfaces"] == [{"name": "eth0", "mac": vmis[0].mac, "sandbox": pod.netns}]
    assert [each["interface"] for each in result["ips"]] == [0, 0]
    plugin.check(pod, previous=result).succeeded()


def test_interfaces_of_one_vlan_share_its_link(
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    node: Netns,
    nested: Nested,
    make_netns: Callable[[str], Netns],
) -> None:
    nested(100, 100)
    other = PodSandbox(make_netns("pod").path, name="web-1")
    nested(100, of=other, subnet=2)
    for each in (pod, other):
        plugin.add(each).succeeded()
    assert vlan_links(node) == [VLAN_100]
    assert sandbox.links() == ["eth0", "eth1"]


def test_a_vlan_link_has_the_upstream_alias_and_is_isolated_from_the_node(
    plugin: Plugin, pod: PodSandbox, node: Netns, nested: Nested
) -> None:
    nested(100)
    plugin.add(pod).succeeded()
    carrier = link(node, VLAN_100)
    assert carrier["ifalias"] == "contrail-k8s-cni-vlan-100"
    assert "UP" in carrier["flags"]
    assert (addresses(node, VLAN_100), link_local(node, VLAN_100)) == ([], [])
    for setting, value in (("rp_filter", "1"), ("arp_ignore", "8"), ("forwarding", "0")):
        assert read_sysctl(node, f"net/ipv4/conf/{VLAN_100}/{setting}") == value
    for setting, value in (("disable_ipv6", "1"), ("accept_ra", "0")):
        assert read_sysctl(node, f"net/ipv6/conf/{VLAN_100}/{setting}") == value


def test_a_pod_reaches_its_network_through_the_vlan(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, switch: Netns, nested: Nested
) -> None:
    switch.ip("link", "add", "link", "port", "name", "port.100", "type", "vlan", "id", "100")
    switch.ip("address", "add", "10.1.0.1/24", "dev", "port.100")
    switch.ip("address", "add", "fd00:1:1::1/64", "dev", "port.100", "nodad")
    switch.ip("link", "set", "port.100", "up")
    nested(100)
    plugin.add(pod).succeeded()
    for address in ("10.1.0.1", "fd00:1:1::1"):
        assert echo(sandbox, switch, address) == b"hello"


def test_addresses_are_announced(plugin: Plugin, pod: PodSandbox, switch: Netns, nested: Nested) -> None:
    """A neighbour that knows another MAC learns the new one."""
    switch.ip("link", "add", "link", "port", "name", "port.100", "type", "vlan", "id", "100")
    switch.ip("address", "add", "10.1.0.1/24", "dev", "port.100")
    switch.ip("link", "set", "port.100", "up")
    switch.ip("neigh", "add", "10.1.0.5", "lladdr", "02:00:00:00:00:99", "dev", "port.100", "nud", "stale")
    [vmi] = nested(100)
    plugin.add(pod).succeeded()
    until(lambda: vmi.mac in switch.ip("neigh", "show", "10.1.0.5"))


def test_a_parent_without_carrier_is_no_obstacle(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, switch: Netns, nested: Nested
) -> None:
    """A cable that is out, or a host that has not connected its end yet: pods start, and have traffic later."""
    switch.ip("link", "set", "port", "down")
    nested(100)
    plugin.add(pod).succeeded()
    assert address_texts(sandbox, "eth0") == ["10.1.0.5/24", "fd00:1:1::5/64"]


def test_the_vrouter_agent_is_told_of_no_port(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, nested: Nested
) -> None:
    """It has the port from the configuration, and runs on another machine, with none of this one's devices."""
    nested(100, 200)
    plugin.add(pod).succeeded()
    assert not plugin.config_dir.exists()
    plugin.delete(pod).succeeded()
    assert [seen.path for seen in agent.requests] == [f"/vm-cfg/{pod.vm_name}", f"/vm/{pod.uid}"]


@pytest.mark.parametrize("agent", [ScriptedNodeAgent, VrouterAgent], indirect=True)
def test_interfaces_are_the_same_whoever_serves_the_list(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested
) -> None:
    nested(100)
    plugin.add(pod).succeeded()
    assert address_texts(sandbox, "eth0") == ["10.1.0.5/24", "fd00:1:1::5/64"]
    assert agent.received("POST") == []
    plugin.delete(pod).succeeded()
    assert (vlan_links(plugin.node), agent.received("DELETE")) == ([], [])


def test_delegated_attachments_come_and_go_one_by_one(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns, nested: Nested
) -> None:
    nested(100, 100, 300)
    plugin.add(pod, settings=DELEGATED).succeeded()
    for number in (2, 1):
        result = plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded().document
        plugin.check(pod, f"net{number}", name=f"net-{number}", previous=result).succeeded()
    assert sandbox.links() == ["eth0", "net2", "net1"]
    assert vlan_links(node) == [VLAN_100, vlan_link_name("eth0", 300)]
    plugin.delete(pod, "net1", name="net-1").succeeded()
    assert vlan_links(node) == [VLAN_100, vlan_link_name("eth0", 300)]
    plugin.delete(pod, "net2", name="net-2").succeeded()
    assert vlan_links(node) == [VLAN_100]
    assert sandbox.links() == ["eth0"]
    plugin.delete(pod, settings=DELEGATED).succeeded()
    assert (vlan_links(node), sandbox.links(), plugin.files()) == ([], [], [])


class TestAVlanLinkOfSomebodyElse:
    def test_it_is_used_unchanged_and_stays(self, plugin: Plugin, pod: PodSandbox, node: Netns, nested: Nested) -> None:
        node.ip("link", "add", "link", "eth0", "name", "lan", "type", "vlan", "id", "100")
        node.ip("link", "set", "lan", "up")
        before = settings_of(node, "lan")
        nested(100)
        result = plugin.add(pod).succeeded().document
        assert vlan_links(node) == ["lan"]
        plugin.check(pod, previous=result).succeeded()
        plugin.delete(pod).succeeded()
        assert settings_of(node, "lan") == before

    def test_it_is_not_set_up(
        self, plugin: Plugin, pod: PodSandbox, node: Netns, sandbox: Netns, nested: Nested
    ) -> None:
        node.ip("link", "add", "link", "eth0", "name", "lan", "type", "vlan", "id", "100")
        nested(100)
        assert "link lan, which has VLAN 100, is down" in plugin.add(pod).failed(11)
        assert (vlan_links(node), sandbox.links()) == (["lan"], [])

    def test_it_may_be_out_of_sight(
        self, plugin: Plugin, pod: PodSandbox, node: Netns, sandbox: Netns, switch: Netns, nested: Nested
    ) -> None:
        node.ip("link", "add", "link", "eth0", "name", "lan", "type", "vlan", "id", "100")
        node.ip("link", "set", "lan", "netns", switch.name)
        nested(200, 100)
        message = plugin.add(pod).failed(104)
        assert "eth1: cannot use VLAN 100 of eth0: its link is in another network namespace" in message
        assert (vlan_links(node), sandbox.links(), plugin.files()) == ([], [], [])


class TestErrors:
    @pytest.mark.parametrize(
        ("vlans", "message"),
        [
            ((100, NO_VLAN), "from 1 to 4094 (vif-type macvlan), not 65535, which means none"),
            ((100, 0), "not 0, out of range"),
            ((4095, 100), "not 4095, out of range"),
            (("100",), 'not "100", out of range'),
            ((None,), "not null, which means none: the agent has no VLAN for it"),
        ],
    )
    def test_an_unusable_vlan_names_interface_and_value(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested, vlans: tuple[Any, ...], message: str
    ) -> None:
        nested(*vlans)
        assert message in plugin.add(pod).failed(100)
        assert (vlan_links(plugin.node), sandbox.links(), plugin.files()) == ([], [], [])

    def test_a_missing_parent_is_an_error_of_the_configuration(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested
    ) -> None:
        nested(100)
        settings = {"parent-interface": "ens9"}
        assert "parent-interface: link ens9 not found" in plugin.add(pod, settings=settings).failed(7)
        assert (sandbox.links(), plugin.files()) == ([], [])
        assert "link ens9 not found" in plugin.status(settings=settings).failed(50)
        plugin.status().succeeded()

    def test_a_parent_that_is_down_may_come_up(
        self, plugin: Plugin, pod: PodSandbox, node: Netns, sandbox: Netns, nested: Nested
    ) -> None:
        nested(100)
        node.ip("link", "set", "eth0", "down")
        assert "parent-interface: link eth0 is down" in plugin.add(pod).failed(11)
        assert (vlan_links(node), sandbox.links(), plugin.files()) == ([], [], [])
        assert "link eth0 is down" in plugin.status().failed(50)
        node.ip("link", "set", "eth0", "up")
        plugin.add(pod).succeeded()

    def test_an_mtu_above_that_of_the_parent_names_both(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested
    ) -> None:
        nested(100)
        message = plugin.add(pod, settings={"mtu": 9000}).failed(104)
        assert f"eth0: its MTU of 9000 exceeds that of link {VLAN_100}, 1500" in message
        assert (vlan_links(plugin.node), sandbox.links(), plugin.files()) == ([], [], [])

    def test_a_name_that_is_taken_in_the_sandbox(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested
    ) -> None:
        nested(100, 200)
        sandbox.ip("link", "add", "eth1", "type", "veth", "peer", "name", "end")
        assert "eth1" in plugin.add(pod).failed(102)
        assert sorted(sandbox.links()) == ["end", "eth1"]
        assert (vlan_links(plugin.node), plugin.files()) == ([], [])

    def test_an_older_sandbox_of_the_pod_has_the_mac_address(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested, make_netns: Callable[[str], Netns]
    ) -> None:
        nested(100)
        plugin.add(pod).succeeded()
        newer = PodSandbox(make_netns("pod").path, uid=pod.uid)
        assert "another link of the VLAN has the MAC address" in plugin.add(newer).failed(11)
        assert sandbox.links() == ["eth0"]
        plugin.delete(pod).succeeded()
        plugin.add(newer).succeeded()

    def test_a_link_of_another_kind_has_the_name_of_the_vlan_link(
        self, plugin: Plugin, pod: PodSandbox, node: Netns, nested: Nested
    ) -> None:
        node.ip("link", "add", VLAN_100, "type", "veth", "peer", "name", "end")
        nested(100)
        assert f"link {VLAN_100} already exists (host side)" in plugin.add(pod).failed(102)
        assert sorted(vlan_links(node)) == sorted([VLAN_100, "end"])
