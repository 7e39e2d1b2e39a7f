"""CHECK succeeds after ADD, and has a message for each difference."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.kernel_state import link, read_sysctl, write_sysctl
from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Vmi

Damage = Callable[[Netns, Netns], object]


@pytest.fixture
def vmis(agent: ScriptedAgent, pod: PodSandbox, serve_pod: ServePod) -> list[Vmi]:
    route = {"dst": "10.9.0.0/16", "gw": "10.1.0.9"}
    first, second = serve_pod(agent, 2)
    vmis = [replace(first, routes=(route,)), second]
    agent.serve(pod.vm_name, vmis)
    return vmis


@pytest.fixture
def result(plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]) -> Any:
    """The result of ADD."""
    return plugin.add(pod).succeeded().document


def test_check_succeeds_after_add_without_output(plugin: Plugin, pod: PodSandbox, result: Any) -> None:
    outcome = plugin.check(pod, previous=result).succeeded()
    assert outcome.stdout == ""


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0", "1.1.0"])
def test_check_works_in_every_version_that_has_it(
    plugin: Plugin, pod: PodSandbox, vmis: list[Vmi], version: str
) -> None:
    result = plugin.add(pod, version=version).succeeded().document
    plugin.check(pod, previous=result, version=version).succeeded()


def test_check_needs_no_agent(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, result: Any) -> None:
    agent.stop()
    plugin.check(pod, previous=result).succeeded()


def test_check_changes_nothing(plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any) -> None:
    before = (plugin.files(), sandbox.ip("address"), sandbox.ip("route"), plugin.node.ip("link"))
    plugin.check(pod, previous=result).succeeded()
    assert (plugin.files(), sandbox.ip("address"), sandbox.ip("route"), plugin.node.ip("link")) == before


def test_host_ends_of_an_earlier_version_are_isolated(plugin: Plugin, pod: PodSandbox, result: Any) -> None:
    host_ends = plugin.node.links()
    for name in host_ends:
        write_sysctl(plugin.node, f"net/ipv4/conf/{name}/rp_filter", "0")
        write_sysctl(plugin.node, f"net/ipv6/conf/{name}/disable_ipv6", "0")
    record = plugin.record(pod)
    del record["isolated"]
    plugin.record_path(pod).write_text(json.dumps(record))
    plugin.check(pod, previous=result).succeeded()
    for name in host_ends:
        assert read_sysctl(plugin.node, f"net/ipv4/conf/{name}/rp_filter") == "1"
        assert read_sysctl(plugin.node, f"net/ipv6/conf/{name}/disable_ipv6") == "1"
    plugin.delete(pod).succeeded()
    assert plugin.node.links() == []


def test_host_end_settings_of_a_datapath_are_kept(plugin: Plugin, pod: PodSandbox, result: Any) -> None:
    name = plugin.node.links()[0]
    write_sysctl(plugin.node, f"net/ipv6/conf/{name}/disable_ipv6", "0")
    plugin.check(pod, previous=result).succeeded()
    assert read_sysctl(plugin.node, f"net/ipv6/conf/{name}/disable_ipv6") == "0"


def test_a_delegated_attachment_is_checked_on_its_own(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
) -> None:
    config: dict[str, Any] = {"settings": {"mode": "delegated"}}
    primary = plugin.add(pod, **config).succeeded().document
    second = plugin.add(pod, "net1", name="net-1", **config).succeeded().document
    sandbox.ip("address", "flush", "dev", "net1")
    plugin.check(pod, previous=primary, **config).succeeded()
    assert "net1" in plugin.check(pod, "net1", previous=second, name="net-1", **config).failed(105)


def exchange_host_ends(pod: Netns, node: Netns) -> None:
    first, second = node.links()
    aliases = [link(node, name)["ifalias"] for name in (first, second)]
    for old, new in ((first, "between"), (second, first), ("between", second)):
        node.ip("link", "set", old, "down")
        node.ip("link", "set", old, "name", new)
        node.ip("link", "set", new, "up")
    for name, alias in zip((first, second), aliases, strict=True):
        node.ip("link", "set", name, "alias", alias)


def rename(pod: Netns, old: str, new: str) -> None:
    pod.ip("link", "set", old, "down")
    pod.ip("link", "set", old, "name", new)


OTHER_MAC = "02:00:00:00:00:99"

DAMAGES: dict[str, tuple[Damage, list[str]]] = {
    "the interface": (lambda pod, node: pod.ip("link", "delete", "eth0"), ["eth0"]),
    "a secondary one": (lambda pod, node: pod.ip("link", "delete", "eth1"), ["eth1"]),
    "the host end": (lambda pod, node: node.ip("link", "delete", node.links()[0]), ["eth0"]),
    "up": (lambda pod, node: pod.ip("link", "set", "eth0", "down"), ["eth0", "down"]),
    "host end up": (lambda pod, node: node.ip("link", "set", node.links()[0], "down"), ["down"]),
    "an address": (lambda pod, node: pod.ip("address", "del", "10.1.0.5/24", "dev", "eth0"), ["10.1.0.5"]),
    "an IPv6 one": (lambda pod, node: pod.ip("address", "del", "fd00:1:1::5/64", "dev", "eth0"), ["fd00:1:1::5"]),
    "the MAC": (lambda pod, node: pod.ip("link", "set", "eth0", "address", OTHER_MAC), [OTHER_MAC]),
    "the alias": (lambda pod, node: node.ip("link", "set", node.links()[0], "alias", "x"), ["alias 'x'"]),
    "a route": (lambda pod, node: pod.ip("route", "del", "10.9.0.0/16"), ["10.9.0.0/16", "10.1.0.9"]),
    "the pairing": (exchange_host_ends, ["two ends of one veth pair"]),
    "the name": (lambda pod, node: rename(pod, "eth1", "other"), ["eth1"]),
    "the default route": (lambda pod, node: pod.ip("route", "del", "default"), ["default"]),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_each_difference_is_named(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any, damage: Damage, words: list[str]
) -> None:
    damage(sandbox, plugin.node)
    message = plugin.check(pod, previous=result).failed(105)
    for word in words:
        assert word in message


def test_all_differences_are_named(plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any) -> None:
    sandbox.ip("address", "del", "10.1.0.5/24", "dev", "eth0")
    sandbox.ip("link", "delete", "eth1")
    message = plugin.check(pod, previous=result).failed(105)
    assert "10.1.0.5" in message
    assert "eth1" in message


def test_of_very_many_differences_the_first_ones_are_named(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    """All of them would be longer than what the shim accepts as an answer."""
    routes = [tuple({"dst": f"10.{100 + vmi}.{n // 256}.{n % 256}/32"} for n in range(1024)) for vmi in range(24)]
    agent.serve(
        pod.vm_name,
        [replace(vmi, routes=of_vmi) for vmi, of_vmi in zip(serve_pod(agent, len(routes)), routes, strict=True)],
    )
    result = plugin.add(pod).succeeded().document
    for number in range(len(routes)):
        sandbox.ip("link", "set", f"eth{number}", "down")
    outcome = plugin.check(pod, previous=result)
    message = outcome.failed(105)
    assert message.startswith("eth0 is down.; eth0 does not have the route to 10.100.0.0/32.; ")
    assert message.endswith(" more")
    assert len(message) < 2048
    assert len(outcome.stderr) < 4096


class TestAfterALaterPluginOfTheChain:
    """The chain's result takes precedence over what ADD created."""

    def changed(self, plugin: Plugin, pod: PodSandbox, result: Any, **interface: Any) -> Outcome:
        host_end, sandbox_end = result["interfaces"]
        return plugin.check(pod, previous={**result, "interfaces": [host_end, {**sandbox_end, **interface}]})

    def test_a_changed_mac_is_expected(self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any) -> None:
        sandbox.ip("link", "set", "eth0", "address", "02:00:00:00:00:99")
        self.changed(plugin, pod, result, mac="02:00:00:00:00:99").succeeded()
        self.changed(plugin, pod, result, mac="02:00:00:00:00:98").failed(105)
        assert len(self.changed(plugin, pod, result, mac="0" * 320_000).failed(105)) < 2048

    @pytest.mark.parametrize("mtu", ["1300", "9000"])
    def test_any_mtu_is_tolerated(self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any, mtu: str) -> None:
        """`tuning` sets it and does not change the result."""
        sandbox.ip("link", "set", "eth0", "mtu", mtu)
        plugin.check(pod, previous=result).succeeded()

    def test_a_removed_default_route_is_tolerated(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any
    ) -> None:
        sandbox.ip("route", "del", "default")
        left = [route for route in result["routes"] if route["dst"] != "0.0.0.0/0"]
        plugin.check(pod, previous={**result, "routes": left}).succeeded()

    def test_additional_addresses_routes_and_links_are_tolerated(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any
    ) -> None:
        sandbox.ip("address", "add", "192.0.2.5/24", "dev", "eth0")
        sandbox.ip("route", "add", "198.51.100.0/24", "via", "10.1.0.9")
        sandbox.ip("link", "add", "more", "type", "veth", "peer", "name", "more-end")
        plugin.check(pod, previous=result).succeeded()


class TestMissing:
    def test_check_requires_prev_result(self, plugin: Plugin, pod: PodSandbox, result: Any) -> None:
        message = plugin.call(plugin.environment("CHECK", pod), json.dumps(plugin.config())).failed(7)
        assert "prevResult" in message

    def test_an_unknown_container(self, plugin: Plugin, pod: PodSandbox) -> None:
        """Code 3: the runtime need not clean up."""
        assert pod.container in plugin.check(pod, previous={}).failed(3)
        assert plugin.files() == []
        assert not plugin.state_dir.exists()

    def test_a_container_attached_by_the_upstream_plugin(self, plugin: Plugin, pod: PodSandbox) -> None:
        """Not code 3: it must be cleaned up."""
        file = plugin.config_dir / pod.vm_name / "x"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"vm-id": pod.container}))
        assert "record not found" in plugin.check(pod, previous={}).failed(105)

    def test_a_damaged_record(self, plugin: Plugin, pod: PodSandbox, result: Any) -> None:
        path = plugin.record_path(pod)
        path.write_bytes(b"")
        assert str(path) in plugin.check(pod, previous=result).failed(106)
        assert path.exists()

    def test_an_unknown_attachment_of_a_known_container(self, plugin: Plugin, pod: PodSandbox, result: Any) -> None:
        assert "eth7" in plugin.check(pod, "eth7", previous=result).failed(105)

    def test_an_attachment_whose_add_did_not_finish(self, plugin: Plugin, pod: PodSandbox, result: Any) -> None:
        path = plugin.record_path(pod)
        path.write_text(json.dumps({**json.loads(path.read_text()), "finished": False}))
        assert "ADD did not finish" in plugin.check(pod, previous=result).failed(105)

    def test_a_missing_sandbox(self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any) -> None:
        sandbox.delete()
        assert pod.netns in plugin.check(pod, previous=result).failed(4)
