"""Results: the format of the configuration's version, and results of chained calls."""

import json
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Subnet

LISTS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
WITH_FAMILY = LISTS[:3]
SINGLE = ["0.1.0", "0.2.0"]


@pytest.mark.parametrize("version", LISTS)
def test_from_030_on_results_have_lists(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str
) -> None:
    [vmi] = serve_pod(agent)
    result = plugin.add(pod, version=version).succeeded().document
    host_name = result["interfaces"][0]["name"]
    families = [{"version": "4"}, {"version": "6"}] if version in WITH_FAMILY else [{}, {}]
    mtu = {"mtu": 1400} if version == "1.1.0" else {}
    assert len(host_name) == 15
    assert result == {
        "cniVersion": version,
        "interfaces": [{"name": host_name, **mtu}, {"name": "eth0", "mac": vmi.mac, "sandbox": pod.netns, **mtu}],
        "ips": [
            {"interface": 1, "address": "10.1.0.5/24", "gateway": "10.1.0.1", **families[0]},
            {"interface": 1, "address": "fd00:1:1::5/64", "gateway": "fd00:1:1::1", **families[1]},
        ],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "::/0", "gw": "fd00:1:1::1"}],
        "dns": {"nameservers": ["10.1.0.2", "fd00:1:1::2"]},
    }


@pytest.mark.parametrize("version", SINGLE)
def test_before_030_results_have_one_address_per_family(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str
) -> None:
    serve_pod(agent, change=lambda vmi: replace(vmi, routes=({"dst": "10.9.0.0/16", "gw": "10.1.0.9"},)))
    assert plugin.add(pod, version=version).succeeded().document == {
        "cniVersion": version,
        "ip4": {
            "ip": "10.1.0.5/24",
            "gateway": "10.1.0.1",
            "routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.9"}, {"dst": "0.0.0.0/0", "gw": "10.1.0.1"}],
        },
        "ip6": {"ip": "fd00:1:1::5/64", "gateway": "fd00:1:1::1", "routes": [{"dst": "::/0", "gw": "fd00:1:1::1"}]},
        "dns": {"nameservers": ["10.1.0.2", "fd00:1:1::2"]},
    }


@pytest.mark.parametrize("version", ["", None])
def test_a_configuration_without_a_version_means_010(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str | None
) -> None:
    serve_pod(agent)
    config = plugin.config()
    config["cniVersion"] = version
    result = plugin.call(plugin.environment("ADD", pod), json.dumps(config)).succeeded().document
    assert result["cniVersion"] == "0.1.0"
    assert "ip4" in result


def test_an_interface_without_addresses_is_attached_if_the_version_can_express_it(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent, change=lambda vmi: replace(vmi, subnets=()))
    message = plugin.add(pod, version="0.2.0").failed(7)
    assert "eth0" in message
    assert plugin.node.links() == []
    assert plugin.files() == []
    result = plugin.add(pod, version="1.0.0").succeeded().document
    assert result["ips"] == []
    assert "routes" not in result
    assert "dns" not in result


def test_dns_is_omitted_without_a_name_server(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    subnets = (Subnet("10.1.0.5", 24, "10.1.0.1", "0.0.0.0"), Subnet("fd00::5", 64, "fd00::1", "::"))
    serve_pod(agent, change=lambda vmi: replace(vmi, subnets=subnets))
    assert "dns" not in plugin.add(pod).succeeded().document


def test_dns_of_the_configuration_takes_precedence(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    dns = {"nameservers": ["192.0.2.53"], "domain": "example.org", "search": ["a", "b"], "options": ["ndots:5"]}
    assert plugin.add(pod, dns=dns).succeeded().document["dns"] == dns


@pytest.mark.parametrize("dns", ["10.0.0.1", {"nameservers": "10.0.0.1"}, {"search": [5]}, {"domain": 5}])
def test_dns_of_a_wrong_type_is_rejected(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, dns: Any
) -> None:
    serve_pod(agent)
    assert "dns" in plugin.add(pod, dns=dns).failed(7)
    assert plugin.node.links() == []


def test_empty_dns_keeps_the_agents(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod) -> None:
    serve_pod(agent)
    empty: tuple[Any, ...] = (None, {}, {"nameservers": []})
    for number, dns in enumerate(empty):
        result = plugin.add(pod, f"eth{number}", dns=dns).succeeded().document
        assert result["dns"] == {"nameservers": ["10.1.0.2", "fd00:1:1::2"]}
        plugin.delete(pod, f"eth{number}").succeeded()


class TestChains:
    """An earlier plugin's result is in `prevResult`; ours is appended."""

    EARLIER: ClassVar[dict[str, Any]] = {
        "interfaces": [{"name": "br0"}, {"name": "dummy0", "mac": "02:00:00:00:00:01", "sandbox": "/x"}],
        "ips": [{"interface": 1, "address": "192.0.2.1/24"}],
        "routes": [{"dst": "198.51.100.0/24", "gw": "192.0.2.254"}],
        "dns": {"nameservers": ["192.0.2.53"]},
    }

    @pytest.mark.parametrize("version", LISTS)
    def test_the_previous_result_is_returned_with_ours_appended(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str
    ) -> None:
        serve_pod(agent)
        earlier = {"cniVersion": version, **self.EARLIER}
        result = plugin.add(pod, version=version, prevResult=earlier).succeeded().document
        assert result["cniVersion"] == version
        assert result["interfaces"][:2] == earlier["interfaces"]
        assert [each["name"] for each in result["interfaces"][2:]][1] == "eth0"
        assert result["ips"][0] == earlier["ips"][0]
        assert [each["interface"] for each in result["ips"]] == [1, 3, 3]
        assert result["routes"][0] == earlier["routes"][0]
        assert len(result["routes"]) == 3

    def test_its_dns_is_kept_if_ours_is_empty(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, change=lambda vmi: replace(vmi, subnets=(Subnet("10.1.0.5", 24),)))
        result = plugin.add(pod, prevResult=self.EARLIER).succeeded().document
        assert result["dns"] == {"nameservers": ["192.0.2.53"]}

    def test_an_empty_one_is_an_empty_result(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent)
        nothing = {"cniVersion": "1.0.0", "interfaces": None}
        assert len(plugin.add(pod, prevResult=nothing).succeeded().document["interfaces"]) == 2

    @pytest.mark.parametrize(
        "previous", ["x", [], {"cniVersion": "0.4.0"}, {"interfaces": {}}, {"ips": ["x"]}, {"routes": 5}]
    )
    def test_a_malformed_one_is_rejected_before_anything_is_created(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, previous: Any
    ) -> None:
        serve_pod(agent)
        assert "prevResult" in plugin.add(pod, prevResult=previous).failed(7)
        assert plugin.node.links() == []

    @pytest.mark.parametrize("version", SINGLE)
    def test_versions_without_lists_cannot_be_chained(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str
    ) -> None:
        serve_pod(agent)
        assert "prevResult" in plugin.add(pod, version=version, prevResult={}).failed(7)


@pytest.mark.parametrize(("key", "value"), [("ipam", {"type": "host-local"}), ("ipam", "x"), ("ipMasq", True)])
def test_unsupported_fields_are_rejected_with_key_and_value(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, key: str, value: Any
) -> None:
    serve_pod(agent)
    message = plugin.add(pod, **{key: value}).failed(2)
    assert key in message
    assert json.dumps(value) in message
    plugin.delete(pod, **{key: value}).succeeded()


@pytest.mark.parametrize(("key", "value"), [("ipam", {}), ("ipam", None), ("ipMasq", False), ("ipMasq", None)])
def test_empty_unsupported_fields_are_accepted(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, key: str, value: Any
) -> None:
    serve_pod(agent)
    plugin.add(pod, **{key: value}).succeeded()


def test_keys_of_runtimes_and_meta_plugins_are_tolerated(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    plugin.add(
        pod,
        capabilities={"portMappings": True, "io.kubernetes.cri.pod-annotations": True},
        runtimeConfig={"portMappings": [{"HostPort": 8080, "ContainerPort": 80}], "PodAnnotations": {}},
        args={"cni": {"labels": [{"key": "a", "value": "b"}]}, "other": 5},
        deviceID="0000:00:1f.6",
    ).succeeded()
