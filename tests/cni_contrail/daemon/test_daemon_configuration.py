"""The daemon's configuration file: its own keys, the plugin's settings, and errors in one line."""

import json
from pathlib import Path

import pytest

from cni_contrail.daemon.configuration import DEFAULT_SOCKET, DaemonConfiguration, load_daemon_configuration
from cni_contrail.daemon.errors import DaemonConfigurationError
from contrail_service.listen import ListenAddress
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, ServePod


def load(tmp_path: Path, text: str) -> DaemonConfiguration:
    file = tmp_path / "cnid.yaml"
    file.write_text(text)
    return load_daemon_configuration(str(file))


def test_all_keys_are_optional(tmp_path: Path) -> None:
    assert load(tmp_path, "") == DaemonConfiguration() == load(tmp_path, "socket:\nmode:\n")
    assert DaemonConfiguration().socket == DEFAULT_SOCKET == "/run/contrail/cni.sock"


def test_keys_are_those_of_the_daemon_and_of_the_plugin(tmp_path: Path) -> None:
    text = "socket: /run/x.sock\nmetrics-listen: '[::1]:9100'\nmode: thick\nmtu: 9000\nlog-level: debug\n"
    assert load(tmp_path, text) == DaemonConfiguration(
        "/run/x.sock", ListenAddress("::1", 9100), {"mode": "thick", "mtu": 9000, "log-level": "debug"}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sockett: /x", "unknown key sockett"),
        ("socket: x", "socket must be an absolute path"),
        ("socket: 2026-01-01", "socket must be an absolute path"),
        (f"socket: /{'x' * 107}", "socket must be at most 107 bytes long"),
        ("metrics-listen: 9100", "metrics-listen: '9100' is not HOST:PORT"),
        ("metrics-listen: a:99999", "metrics-listen: 'a:99999' is not HOST:PORT"),
        ("mtu: big", "mtu must be a whole number from 68 to 65535"),
        ("mode: 2026-01-01", "mode must be"),
        ("- mode", "must be a mapping with string keys"),
        ("1: x", "must be a mapping with string keys"),
        ("mode: thick\nmtu: 1400\nmode: delegated", "mode: duplicate key, in line 1 and in line 3"),
        ("parent-interface: eth0/1", "parent-interface must be the name of a link"),
        ("mode: [", "not valid YAML"),
        ("mode: !!python/object:os.system x", "not valid YAML"),
    ],
)
def test_an_error_names_the_key_and_the_value(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DaemonConfigurationError) as refused:
        load(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path}/cnid.yaml: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", None])
def test_an_error_names_an_unreadable_file(tmp_path: Path, data: bytes | None) -> None:
    file = tmp_path / "cnid.yaml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(DaemonConfigurationError, match=r"cnid\.yaml"):
        load_daemon_configuration(str(file))


class TestForTheWholeNode:
    def test_a_network_must_not_change_what_the_daemon_sets(
        self, agent: ScriptedAgent, plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        caller.configuration["cluster-name"] = "k8s"
        serve_pod(agent)
        message = plugin.add(pod, settings={"cluster-name": "other"}).failed(7)
        assert 'cluster-name is set node-wide to "k8s" and must not be changed to "other"' in message
        plugin.add(pod, settings={"cluster-name": "k8s"}).succeeded()

    def test_the_daemons_settings_override_the_node_wide_file(
        self, agent: ScriptedAgent, plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        plugin.node_file.write_text('{"mode": "delegated", "cluster-name": "k8s"}')
        caller.configuration["mode"] = "thick"
        serve_pod(agent, 3)
        plugin.add(pod, settings={"cluster-name": "other"}).failed(7)
        plugin.add(pod).succeeded()
        assert len(plugin.node.links()) == 3


def test_log_lines_are_json_with_log_format_json(
    agent: ScriptedAgent, plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox, serve_pod: ServePod
) -> None:
    caller.options = ["--log-format", "json"]
    serve_pod(agent)
    lines = [json.loads(line) for line in plugin.add(pod).succeeded().stderr.splitlines()]
    attached = next(line for line in lines if "attached" in line["message"])
    assert (attached["container"], attached["pod"]) == (pod.container, "demo/web-0")
