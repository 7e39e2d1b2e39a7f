"""VERSION of each plugin: an unsupported version of the configuration is reported before it fails every ADD."""

import json
from typing import Any

import pytest

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import CniRuntimeError, NetworkConfigurationError, PluginCallError, PluginFailedError
from tests.support.scripted_plugins import PluginOutput, Plugins, network

NEW = ("0.3.1", "0.4.0", "1.0.0", "1.1.0")
OLD = ("0.3.0", "0.3.1", "0.4.0")


def supporting(versions: tuple[str, ...], **keys: Any) -> PluginOutput:
    return PluginOutput(json.dumps({"cniVersion": "1.1.0", "supportedVersions": versions, **keys}))


def test_plugins_that_support_the_version_pass(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("new", VERSION=supporting(NEW))
    plugins.script("old", VERSION=supporting(OLD))
    runtime.check_versions(network("new", "old", version="0.4.0"))
    assert [f"{call.command} {call.plugin}" for call in plugins.calls()] == ["VERSION new", "VERSION old"]


def test_an_outdated_plugin_is_named_with_its_versions(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("new", VERSION=supporting(NEW))
    plugins.script("old", VERSION=supporting(OLD))
    with pytest.raises(NetworkConfigurationError) as caught:
        runtime.check_versions(network("new", "old", version="1.0.0"))
    assert str(caught.value) == (
        "network net: CNI version 1.0.0 is not supported by plugin old (it supports 0.3.0, 0.3.1, 0.4.0)"
    )


def test_all_outdated_plugins_are_named(runtime: Runtime, plugins: Plugins) -> None:
    for name in ("one", "two"):
        plugins.script(name, VERSION=supporting(("0.4.0",)))
    with pytest.raises(NetworkConfigurationError, match=r"by plugin one \(it supports 0\.4\.0\) and plugin two"):
        runtime.check_versions(network("one", "two", version="1.1.0"))


def test_the_version_call_equals_that_of_libcni(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("new", VERSION=supporting(NEW))
    runtime.check_versions(network("new", version="1.0.0"))
    call = plugins.calls()[0]
    assert call.stdin == {"cniVersion": "1.1.0"}
    assert {key: value for key, value in call.environment.items() if key.startswith("CNI_")} == {
        "CNI_COMMAND": "VERSION",
        "CNI_CONTAINERID": "",
        "CNI_NETNS": "dummy",
        "CNI_IFNAME": "dummy",
        "CNI_ARGS": "",
        "CNI_PATH": "dummy",
    }


class TestOldPlugins:
    """Results of plugins from before the list of versions, or from before VERSION."""

    @pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
    def test_0_2_0_without_a_list_means_0_1_0_and_0_2_0(self, runtime: Runtime, plugins: Plugins, version: str) -> None:
        plugins.script("bridge", VERSION=PluginOutput('{"cniVersion": "0.2.0"}'))
        runtime.check_versions(network("bridge", version=version))
        with pytest.raises(NetworkConfigurationError, match=r"it supports 0\.1\.0, 0\.2\.0"):
            runtime.check_versions(network("bridge", version="0.3.0"))

    def test_a_plugin_without_version_supports_0_1_0(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", VERSION=PluginOutput('{"code": 4, "msg": "unknown CNI_COMMAND: VERSION"}', "", 1))
        runtime.check_versions(network("bridge", version="0.1.0"))
        with pytest.raises(NetworkConfigurationError, match=r"it supports 0\.1\.0\)"):
            runtime.check_versions(network("bridge", version="0.2.0"))

    @pytest.mark.parametrize(
        "error",
        [
            {"code": 4, "msg": "unknown CNI_COMMAND: VERSION", "details": "of another kind"},
            {"code": 999, "msg": "out of memory"},
        ],
    )
    def test_any_other_failure_is_raised(self, runtime: Runtime, plugins: Plugins, error: dict[str, Any]) -> None:
        plugins.script("bridge", VERSION=PluginOutput(json.dumps(error), "", 1))
        with pytest.raises(PluginCallError):
            runtime.check_versions(network("bridge", version="0.1.0"))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "1.0.0",
        "[]",
        "{}",
        '{"cniVersion": "1.0.0"}',
        '{"supportedVersions": ["1.0.0"]}',
        '{"cniVersion": "1.0.0", "supportedVersions": []}',
        '{"cniVersion": "1.0.0", "supportedVersions": "1.0.0"}',
        '{"cniVersion": "1.0.0", "supportedVersions": [1]}',
    ],
)
def test_a_version_result_without_versions_is_a_failure(runtime: Runtime, plugins: Plugins, answer: str) -> None:
    plugins.script("bridge", VERSION=PluginOutput(answer))
    with pytest.raises(PluginFailedError, match="plugin bridge: VERSION result lists no versions"):
        runtime.check_versions(network("bridge"))


def test_a_missing_plugin_is_reported(runtime: Runtime) -> None:
    with pytest.raises(CniRuntimeError, match="plugin bridge: not found"):
        runtime.check_versions(network("bridge"))
