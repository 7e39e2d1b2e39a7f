"""Requested MACs and addresses: accepted if the agent allocated them, otherwise rejected with both values."""

import json
from typing import Any

import pytest

from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Vmi

FOREIGN_MAC = "02:00:00:aa:bb:cc"


@pytest.fixture
def vmi(agent: ScriptedAgent, serve_pod: ServePod) -> Vmi:
    return serve_pod(agent, 2)[0]


def add(plugin: Plugin, pod: PodSandbox, arguments: str = "", **config: Any) -> Outcome:
    environment = plugin.environment("ADD", pod, CNI_ARGS=f"{pod.args};{arguments}")
    return plugin.call(environment, json.dumps(plugin.config(**config)))


def sources(key: str, variable: str, value: Any) -> list[dict[str, Any]]:
    """The sources of requests."""
    text = ",".join(value) if isinstance(value, list) else value
    return [
        {"runtimeConfig": {key: value}},
        {"runtimeConfig": {key.capitalize(): value}},
        {"args": {"cni": {key: value}}},
        {"arguments": f"{variable}={text}"},
    ]


@pytest.mark.parametrize("position", range(4))
def test_allocated_addresses_may_be_requested_from_every_source(
    plugin: Plugin, pod: PodSandbox, vmi: Vmi, position: int
) -> None:
    ask_mac = sources("mac", "MAC", vmi.mac.upper().replace(":", "-"))[position]
    ask_ips = sources("ips", "IP", ["10.1.0.5/24", "FD00:1:1:0::0005"])[position]
    add(plugin, pod, **ask_mac).succeeded()
    plugin.delete(pod).succeeded()
    add(plugin, pod, **ask_ips).succeeded()


@pytest.mark.parametrize("position", range(4))
def test_another_mac_is_rejected_with_both(plugin: Plugin, pod: PodSandbox, vmi: Vmi, position: int) -> None:
    message = add(plugin, pod, **sources("mac", "MAC", FOREIGN_MAC)[position]).failed(7)
    assert FOREIGN_MAC in message
    assert vmi.mac in message
    assert (plugin.node.links(), plugin.files()) == ([], [])


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("requested", ["10.1.0.6", "fd00:1:1::6/64", "not-an-address"])
def test_another_address_is_rejected_with_both(
    plugin: Plugin, pod: PodSandbox, vmi: Vmi, position: int, requested: str
) -> None:
    message = add(plugin, pod, **sources("ips", "IP", ["10.1.0.5", requested])[position]).failed(7)
    assert requested in message
    assert "10.1.0.5, fd00:1:1::5" in message
    assert (plugin.node.links(), plugin.files()) == ([], [])


def test_runtime_config_takes_precedence_over_arguments(plugin: Plugin, pod: PodSandbox, vmi: Vmi) -> None:
    add(
        plugin,
        pod,
        arguments=f"MAC={FOREIGN_MAC};IP=192.0.2.1",
        args={"cni": {"mac": vmi.mac, "ips": ["192.0.2.2"]}},
        runtimeConfig={"ips": ["10.1.0.5"]},
    ).succeeded()


@pytest.mark.parametrize("requested", [5, [5], {"a": "b"}])
def test_a_request_of_a_wrong_type_is_rejected(plugin: Plugin, pod: PodSandbox, vmi: Vmi, requested: Any) -> None:
    assert "ips" in add(plugin, pod, runtimeConfig={"ips": requested}).failed(7)
    assert "MAC" in add(plugin, pod, runtimeConfig={"mac": requested}).failed(7)


@pytest.mark.parametrize("requested", [None, "", []])
def test_an_empty_request_is_ignored(plugin: Plugin, pod: PodSandbox, vmi: Vmi, requested: Any) -> None:
    add(
        plugin, pod, runtimeConfig={"ips": requested, "mac": requested}, args={"cni": None}, arguments="MAC=;IP="
    ).succeeded()


def test_it_applies_to_the_interface_of_the_attachment(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmi: Vmi
) -> None:
    second = agent.virtual_machines[pod.vm_name][1]
    config = plugin.config(name="net-1", runtimeConfig={"mac": second.mac, "ips": ["10.1.1.5"]})
    plugin.call(plugin.environment("ADD", pod, "net1"), json.dumps(config)).succeeded()


def test_addresses_of_the_vrouter_agent_are_compared_too(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(vrouter_agent)
    assert "10.1.0.6" in add(plugin, pod, runtimeConfig={"ips": ["10.1.0.6"]}).failed(7)
    assert (plugin.node.links(), plugin.files(), vrouter_agent.ports) == ([], [], {})
    add(plugin, pod, runtimeConfig={"ips": ["10.1.0.5"]}).succeeded()
