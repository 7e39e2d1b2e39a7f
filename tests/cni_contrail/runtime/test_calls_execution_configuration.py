"""Standard input and environment of a plugin (CNI specification 1.0.0, sections 2 and 3)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.calls import execution_configuration
from cni_contrail.runtime.chain import Runtime
from tests.support.scripted_plugins import POD, Plugins, added, network, result

WORDS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS, lambda x: st.lists(x) | st.dictionaries(WORDS, x), max_leaves=8
)


def derive(plugin: dict[str, Any], attachment: Attachment = POD, previous: Any = None, **keys: Any) -> dict[str, Any]:
    described = network({"type": "bridge", **plugin}, **keys)
    text = execution_configuration(described, described.plugins[0], attachment, previous)
    document: dict[str, Any] = json.loads(text)
    return document


def pod(**parameters: Any) -> Attachment:
    return Attachment(POD.container_id, POD.netns, POD.ifname, **parameters)


def test_name_and_version_come_from_the_list() -> None:
    derived = derive({"name": "mine", "cniVersion": "0.2.0"}, version="0.4.0")
    assert derived == {"type": "bridge", "name": "net", "cniVersion": "0.4.0"}


@given(st.dictionaries(WORDS, JSON, max_size=5))
def test_keys_of_the_plugin_are_passed_unchanged(keys: dict[str, Any]) -> None:
    mine = {key: value for key, value in keys.items() if key not in ("type", "name", "cniVersion", "capabilities")}
    derived = derive(mine)
    assert {key: derived[key] for key in mine} == mine


def test_keys_are_sorted_as_libcni_writes_them() -> None:
    described = network({"type": "bridge", "zeta": 1, "alpha": {"b": 1, "a": 2}})
    text = execution_configuration(described, described.plugins[0], POD, None)
    assert text == json.dumps(json.loads(text), sort_keys=True).encode()


DECLARED = {"capabilities": {"mac": True, "ips": True, "portMappings": False}}


class TestRuntimeConfig:
    def test_a_declared_capability_is_inserted(self) -> None:
        derived = derive(DECLARED, pod(capability_args={"mac": "02:00:00:00:00:01"}))
        assert derived["runtimeConfig"] == {"mac": "02:00:00:00:00:01"}

    @pytest.mark.parametrize("capability", ["portMappings", "bandwidth"])
    def test_an_undeclared_capability_is_not_inserted(self, capability: str) -> None:
        assert "runtimeConfig" not in derive(DECLARED, pod(capability_args={capability: [1]}))

    def test_without_capabilities_the_key_is_absent(self) -> None:
        assert "runtimeConfig" not in derive(DECLARED)

    def test_the_capabilities_key_is_removed(self) -> None:
        assert "capabilities" not in derive(DECLARED, pod(capability_args={"mac": "x"}))

    def test_each_plugin_of_a_chain_gets_its_own_capabilities(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("first", ADD=added())
        plugins.script("second", ADD=added())
        chain = network(
            {"type": "first", "capabilities": {"ips": True}}, {"type": "second", "capabilities": {"mac": True}}
        )
        runtime.add(chain, pod(capability_args={"ips": ["10.1.0.9"], "mac": "02:00:00:00:00:01"}))
        assert [call.stdin["runtimeConfig"] for call in plugins.calls()] == [
            {"ips": ["10.1.0.9"]},
            {"mac": "02:00:00:00:00:01"},
        ]


class TestGenericArguments:
    def test_arguments_are_inserted_as_args(self) -> None:
        assert derive({}, pod(args=(("A", "1"), ("B", "x=y"))))["args"] == {"A": "1", "B": "x=y"}

    def test_args_of_the_configuration_take_precedence(self) -> None:
        derived = derive({"args": {"cni": {"ips": ["10.0.0.1"]}}}, pod(args=(("A", "1"), ("cni", "x"))))
        assert derived["args"] == {"cni": {"ips": ["10.0.0.1"]}, "A": "1"}

    def test_without_arguments_the_configuration_is_unchanged(self) -> None:
        assert "args" not in derive({})
        assert derive({"args": 7}, pod(args=(("A", "1"),)))["args"] == 7

    def test_arguments_are_in_the_environment_in_order(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added())
        runtime.add(network("bridge"), pod(args=(("IgnoreUnknown", "1"), ("K8S_POD_NAME", "web-0"))))
        assert plugins.calls()[0].environment["CNI_ARGS"] == "IgnoreUnknown=1;K8S_POD_NAME=web-0"


class TestEnvironment:
    def test_the_environment_has_the_parameters_of_the_attachment(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added())
        runtime.add(network("bridge"), POD)
        environment = plugins.calls()[0].environment
        assert {key: value for key, value in environment.items() if key.startswith("CNI_")} == {
            "CNI_COMMAND": "ADD",
            "CNI_CONTAINERID": "c" * 64,
            "CNI_NETNS": "/run/netns/pod",
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": "",
            "CNI_PATH": str(plugins.directory),
        }

    def test_the_environment_includes_that_of_the_runtime(
        self, make_runtime: Callable[..., Runtime], plugins: Plugins
    ) -> None:
        plugins.script("bridge", ADD=added())
        make_runtime(environment={"COLOUR": "red", "CNI_IFNAME": "stale"}).add(network("bridge"), POD)
        environment = plugins.calls()[0].environment
        assert environment["COLOUR"] == "red"
        assert environment["CNI_IFNAME"] == "eth0"
        assert "HOME" not in environment

    def test_the_default_environment_is_that_of_this_process(
        self, runtime: Runtime, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLOUR", "blue")
        plugins.script("bridge", ADD=added())
        runtime.add(network("bridge"), POD)
        assert plugins.calls()[0].environment["COLOUR"] == "blue"


class TestPreviousResults:
    def test_the_first_plugin_of_an_add_gets_no_result(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added())
        runtime.add(network({"type": "bridge"}), POD)
        assert "prevResult" not in plugins.calls()[0].stdin

    def test_later_plugins_get_the_previous_result(self, runtime: Runtime, plugins: Plugins) -> None:
        for name in ("one", "two", "three"):
            plugins.script(name, ADD=added(result(dns={"domain": name})))
        runtime.add(network("one", "two", "three"), POD)
        assert [call.stdin.get("prevResult", {}).get("dns") for call in plugins.calls()] == [
            None,
            {"domain": "one"},
            {"domain": "two"},
        ]

    def test_before_0_3_0_no_plugin_gets_a_result(self, runtime: Runtime, plugins: Plugins) -> None:
        flat = {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.5/24"}}
        for name in ("one", "two"):
            plugins.script(name, ADD=added(flat))
        runtime.add(network("one", "two", version="0.2.0"), POD)
        assert all("prevResult" not in call.stdin for call in plugins.calls())

    @pytest.mark.parametrize("operation", ["check", "delete"])
    def test_check_and_del_pass_the_final_result_to_every_plugin(
        self, runtime: Runtime, plugins: Plugins, operation: str
    ) -> None:
        for name in ("one", "two"):
            plugins.script(name, ADD=added(result(dns={"domain": name})))
        chain = network("one", "two", version="1.0.0")
        final = runtime.add(chain, POD)
        getattr(runtime, operation)(chain, POD)
        assert [call.stdin["prevResult"] for call in plugins.calls()[2:]] == [final, final]

    def test_before_0_4_0_del_passes_no_result(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added(result("0.3.1")))
        chain = network("bridge", version="0.3.1")
        runtime.add(chain, POD)
        runtime.delete(chain, POD)
        assert "prevResult" not in plugins.calls()[1].stdin

    def test_a_cached_result_is_converted_to_the_version_of_the_configuration(
        self, runtime: Runtime, plugins: Plugins
    ) -> None:
        plugins.script("bridge", ADD=added(result("0.4.0")))
        runtime.add(network("bridge", version="0.4.0"), POD)
        runtime.delete(network("bridge", version="1.0.0"), POD)
        assert plugins.calls()[1].stdin["prevResult"] == result("1.0.0")
