"""ADD and CHECK run forward, DEL backward; each stops at a failure (CNI specification 1.0.0, section 3)."""

import dataclasses
import json
from pathlib import Path

import pytest

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import AttachmentError, NetworkConfigurationError, PluginCallError, ResultError
from tests.support.scripted_plugins import POD, PluginOutput, Plugins, added, network, result

CHAIN = network("one", "two", "three")
FAILURE = PluginOutput(json.dumps({"code": 7, "msg": "no"}), status=1)


@pytest.fixture
def chain(plugins: Plugins) -> Plugins:
    for name in ("one", "two", "three"):
        plugins.script(name, ADD=added())
    return plugins


def order(plugins: Plugins) -> list[str]:
    return [f"{call.command} {call.plugin}" for call in plugins.calls()]


def test_add_runs_forward_and_returns_the_last_result(runtime: Runtime, chain: Plugins) -> None:
    chain.script("three", ADD=added(result(dns={"domain": "last"})))
    assert runtime.add(CHAIN, POD) == result(dns={"domain": "last"})
    assert order(chain) == ["ADD one", "ADD two", "ADD three"]


def test_add_stops_at_the_first_plugin_that_fails(runtime: Runtime, chain: Plugins) -> None:
    chain.script("two", ADD=FAILURE)
    with pytest.raises(PluginCallError, match="plugin two"):
        runtime.add(CHAIN, POD)
    assert order(chain) == ["ADD one", "ADD two"]
    assert runtime.cached(CHAIN, POD) is None


def test_check_runs_forward(runtime: Runtime, chain: Plugins) -> None:
    runtime.add(CHAIN, POD)
    runtime.check(CHAIN, POD)
    assert order(chain)[3:] == ["CHECK one", "CHECK two", "CHECK three"]


def test_check_stops_at_the_first_plugin_that_fails(runtime: Runtime, chain: Plugins) -> None:
    chain.script("two", ADD=added(), CHECK=FAILURE)
    runtime.add(CHAIN, POD)
    with pytest.raises(PluginCallError):
        runtime.check(CHAIN, POD)
    assert order(chain)[3:] == ["CHECK one", "CHECK two"]


def test_check_executes_nothing_if_the_list_disables_it(runtime: Runtime, chain: Plugins) -> None:
    runtime.check(network("one", disableCheck=True), POD)
    assert order(chain) == []


def test_check_is_rejected_before_0_4_0(runtime: Runtime, chain: Plugins) -> None:
    with pytest.raises(NetworkConfigurationError, match=r"network net: CNI version 0\.3\.1 has no CHECK"):
        runtime.check(network("one", version="0.3.1"), POD)


def test_check_without_an_add_is_rejected(runtime: Runtime, chain: Plugins) -> None:
    with pytest.raises(ResultError, match="was not attached"):
        runtime.check(CHAIN, POD)
    assert order(chain) == []


def test_del_runs_backward_and_removes_the_cached_result(runtime: Runtime, chain: Plugins) -> None:
    runtime.add(CHAIN, POD)
    runtime.delete(CHAIN, POD)
    assert order(chain)[3:] == ["DEL three", "DEL two", "DEL one"]
    assert runtime.cached(CHAIN, POD) is None


def test_del_stops_at_the_first_plugin_that_fails_and_keeps_the_cached_result(runtime: Runtime, chain: Plugins) -> None:
    chain.script("two", ADD=added(), DEL=FAILURE)
    runtime.add(CHAIN, POD)
    with pytest.raises(PluginCallError):
        runtime.delete(CHAIN, POD)
    assert order(chain)[3:] == ["DEL three", "DEL two"]
    assert runtime.cached(CHAIN, POD) is not None


def test_del_is_idempotent_and_needs_no_add(runtime: Runtime, chain: Plugins) -> None:
    runtime.delete(CHAIN, POD)
    runtime.delete(CHAIN, POD)
    assert order(chain) == ["DEL three", "DEL two", "DEL one"] * 2
    assert all("prevResult" not in call.stdin for call in chain.calls())


def test_del_needs_no_namespace(runtime: Runtime, chain: Plugins) -> None:
    runtime.delete(network("one"), dataclasses.replace(POD, netns=""))
    assert chain.calls()[0].environment["CNI_NETNS"] == ""


def test_add_and_check_need_a_namespace(runtime: Runtime, chain: Plugins) -> None:
    gone = dataclasses.replace(POD, netns="")
    with pytest.raises(AttachmentError, match=r"ADD requires a network namespace"):
        runtime.add(CHAIN, gone)
    with pytest.raises(AttachmentError, match=r"CHECK requires a network namespace"):
        runtime.check(CHAIN, gone)
    assert order(chain) == []


def test_a_plugin_is_taken_from_the_first_directory_that_has_it(
    runtime: Runtime, tmp_path: Path, plugins: Plugins
) -> None:
    other = Plugins(tmp_path)
    other.script("one", ADD=added())
    plugins.script("one", ADD=added())
    both = Runtime([str(tmp_path), str(plugins.directory)], cache_dir=str(tmp_path / "cache"))
    both.add(network("one"), POD)
    assert order(other) == ["ADD one"]
    assert order(plugins) == []
    assert other.calls()[0].environment["CNI_PATH"] == f"{tmp_path}:{plugins.directory}"
