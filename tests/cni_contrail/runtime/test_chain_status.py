"""STATUS checks whether each plugin could serve an ADD (CNI specification 1.1.0, sections 2 and 3)."""

import json

import pytest

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import PluginCallError, PluginFailedError, PluginTimeoutError
from cni_contrail.runtime.versions import SUPPORTED
from tests.support.scripted_plugins import PluginOutput, Plugins, network

CHAIN = network("one", "two", "three", version="1.1.0")


def failure(code: int) -> PluginOutput:
    return PluginOutput(
        json.dumps({"cniVersion": "1.1.0", "code": code, "msg": "agent away", "details": "refused"}), "", 1
    )


@pytest.fixture
def chain(plugins: Plugins) -> Plugins:
    for name in ("one", "two", "three"):
        plugins.script(name)
    return plugins


def asked(plugins: Plugins) -> list[str]:
    return [f"{call.command} {call.plugin}" for call in plugins.calls()]


def test_status_runs_every_plugin_in_order(runtime: Runtime, chain: Plugins) -> None:
    runtime.status(CHAIN)
    assert asked(chain) == ["STATUS one", "STATUS two", "STATUS three"]


@pytest.mark.parametrize("version", SUPPORTED[:-1])
def test_before_1_1_0_no_plugin_is_executed(runtime: Runtime, chain: Plugins, version: str) -> None:
    runtime.status(network("one", version=version))
    assert asked(chain) == []


@pytest.mark.parametrize("code", [50, 51])
def test_the_first_plugin_that_is_not_ready_is_reported_with_its_code(
    runtime: Runtime, chain: Plugins, code: int
) -> None:
    chain.script("two", STATUS=failure(code))
    with pytest.raises(PluginCallError) as caught:
        runtime.status(CHAIN)
    assert (caught.value.plugin, caught.value.command, caught.value.code) == ("two", "STATUS", code)
    assert asked(chain) == ["STATUS one", "STATUS two"]


def test_a_missing_plugin_is_reported(runtime: Runtime, chain: Plugins) -> None:
    with pytest.raises(PluginFailedError, match="plugin four: not found"):
        runtime.status(network("one", "four", version="1.1.0"))


def test_a_hanging_plugin_is_killed(plugins: Plugins) -> None:
    plugins.write("one", "#!/bin/sh\nexec sleep 300\n")
    with pytest.raises(PluginTimeoutError):
        Runtime([str(plugins.directory)], timeout=0.1).status(network("one", version="1.1.0"))


def test_variables_of_an_attachment_are_set_and_empty(runtime: Runtime, chain: Plugins) -> None:
    runtime.status(network("one", version="1.1.0"))
    environment = chain.calls()[0].environment
    assert {key: value for key, value in environment.items() if key.startswith("CNI_")} == {
        "CNI_COMMAND": "STATUS",
        "CNI_CONTAINERID": "",
        "CNI_NETNS": "",
        "CNI_IFNAME": "",
        "CNI_ARGS": "",
        "CNI_PATH": str(chain.directory),
    }


def test_the_configuration_adds_only_name_and_version(runtime: Runtime, chain: Plugins) -> None:
    plugin = {"type": "one", "capabilities": {"mac": True}, "ipam": {"type": "host-local"}}
    runtime.status(network(plugin, version="1.1.0"))
    assert chain.calls()[0].stdin == {
        "type": "one",
        "ipam": {"type": "host-local"},
        "name": "net",
        "cniVersion": "1.1.0",
    }


def test_output_of_a_ready_plugin_is_ignored(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("one", STATUS=PluginOutput("ready", "well\n"))
    runtime.status(network("one", version="1.1.0"))
