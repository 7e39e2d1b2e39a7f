"""Invalid attachments are detached, then GC of each plugin removes the rest."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cni_contrail.runtime.attachment import Attachment, AttachmentKey
from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import CniRuntimeError, PluginCallError, PluginTimeoutError, ResultError
from tests.support.scripted_plugins import POD, Call, PluginOutput, Plugins, added, network, result

FAILURE = PluginOutput(json.dumps({"code": 11, "msg": "not now"}), "", 1)
OLD = ("0.1.0", "0.3.1", "0.4.0", "1.0.0")

CHAIN = network("one", "two", version="1.1.0")

A = Attachment("a", "/run/netns/a", "eth0", args=(("K8S_POD_NAME", "a"),), capability_args={"mac": "x"})
A_SECOND = Attachment("a", "/run/netns/a", "net1")
B = Attachment("b", "/run/netns/b", "eth0")


def answer(version: str) -> PluginOutput:
    if version in ("0.1.0", "0.2.0"):
        return added({"cniVersion": version, "ip4": {"ip": "10.1.0.5/24"}})
    return added(result(version))


@pytest.fixture
def chain(plugins: Plugins) -> Plugins:
    for name in ("one", "two"):
        plugins.script(name, ADD=answer("1.1.0"))
    return plugins


@pytest.fixture
def attached(runtime: Runtime, chain: Plugins) -> Plugins:
    """Two attachments of one container and one of another; the record of their calls is cleared."""
    for attachment in (A, A_SECOND, B):
        runtime.add(CHAIN, attachment)
    chain.forget_calls()
    return chain


def describe(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        variables = call.environment
        of = f" {variables['CNI_CONTAINERID']}/{variables['CNI_IFNAME']}" if call.command == "DEL" else ""
        yield f"{call.command} {call.plugin}{of}"


def order(plugins: Plugins) -> list[str]:
    return list(describe(plugins.calls()))


GC_OF_BOTH = ["GC one", "GC two"]


class TestDetached:
    def test_each_invalid_attachment_is_detached_with_the_chain_backward(
        self, runtime: Runtime, attached: Plugins
    ) -> None:
        assert runtime.garbage_collect(CHAIN, [B.key]) == (A.key, A_SECOND.key)
        stale = ["DEL two a/eth0", "DEL one a/eth0", "DEL two a/net1", "DEL one a/net1"]
        assert order(attached) == [*stale, *GC_OF_BOTH]
        assert [each.attachment.key for each in runtime.attachments()] == [B.key]

    def test_one_of_several_attachments_of_a_container_is_detached(self, runtime: Runtime, attached: Plugins) -> None:
        assert runtime.garbage_collect(CHAIN, [A.key, B.key]) == (A_SECOND.key,)

    def test_all_are_detached_if_none_is_valid(self, runtime: Runtime, attached: Plugins) -> None:
        assert runtime.garbage_collect(CHAIN, []) == (A.key, A_SECOND.key, B.key)
        assert runtime.attachments() == []

    def test_none_is_detached_if_all_are_valid(self, runtime: Runtime, attached: Plugins) -> None:
        assert runtime.garbage_collect(CHAIN, [A.key, A_SECOND.key, B.key]) == ()
        assert order(attached) == GC_OF_BOTH

    def test_attachments_of_another_network_are_kept(self, runtime: Runtime, attached: Plugins) -> None:
        other = CHAIN._replace(name="other")
        runtime.add(other, B)
        attached.forget_calls()
        assert runtime.garbage_collect(other, [AttachmentKey("x", "eth0")]) == (B.key,)
        assert len(runtime.attachments()) == 3

    def test_a_network_name_is_not_matched_by_prefix(self, runtime: Runtime, attached: Plugins) -> None:
        """Names of cache files are ambiguous: `net-a-eth0` may belong to network `net` or `net-a`."""
        runtime.add(CHAIN._replace(name="net-a"), Attachment("c", "/run/netns/c", "eth0"))
        assert runtime.garbage_collect(CHAIN._replace(name="net-a"), []) == (AttachmentKey("c", "eth0"),)
        assert len(runtime.attachments()) == 3

    def test_a_valid_attachment_is_matched_by_container_and_ifname(self, runtime: Runtime, attached: Plugins) -> None:
        assert A.key in runtime.garbage_collect(CHAIN, [AttachmentKey("a", "eth1"), A_SECOND.key, B.key])

    def test_an_attachment_is_detached_with_the_parameters_of_its_add(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("one", ADD=answer("1.1.0"))
        declaring = network({"type": "one", "capabilities": {"mac": True}}, version="1.1.0")
        runtime.add(declaring, A)
        runtime.garbage_collect(declaring, [])
        delete = plugins.calls()[1]
        assert delete.environment["CNI_NETNS"] == "/run/netns/a"
        assert delete.environment["CNI_ARGS"] == "K8S_POD_NAME=a"
        assert delete.stdin["runtimeConfig"] == {"mac": "x"}
        assert delete.stdin["prevResult"] == result("1.1.0")

    @pytest.mark.parametrize("version", OLD)
    def test_attachments_are_detached_in_versions_without_gc(
        self, runtime: Runtime, plugins: Plugins, version: str
    ) -> None:
        plugins.script("one", ADD=answer(version))
        runtime.add(network("one", version=version), B)
        assert runtime.garbage_collect(network("one", version=version), []) == (B.key,)
        assert order(plugins) == ["ADD one", "DEL one b/eth0"]

    def test_an_attachment_added_in_another_version_is_detached(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("one", ADD=answer("0.4.0"))
        runtime.add(network("one", version="0.4.0"), B)
        runtime.garbage_collect(network("one", version="1.1.0"), [])
        assert plugins.calls()[1].stdin["prevResult"] == result("1.1.0")


class TestPluginConfiguration:
    def test_the_valid_attachments_are_passed_under_both_keys(self, runtime: Runtime, chain: Plugins) -> None:
        runtime.garbage_collect(
            network({"type": "one", "capabilities": {"mac": True}}, version="1.1.0"), [B.key, A.key]
        )
        valid = [{"containerID": "b", "ifname": "eth0"}, {"containerID": "a", "ifname": "eth0"}]
        assert chain.calls()[0].stdin == {
            "type": "one",
            "name": "net",
            "cniVersion": "1.1.0",
            "cni.dev/valid-attachments": valid,
            "cni.dev/attachments": valid,
        }

    def test_no_valid_attachments_are_passed_as_an_empty_list(self, runtime: Runtime, chain: Plugins) -> None:
        runtime.garbage_collect(CHAIN, [])
        assert chain.calls()[0].stdin["cni.dev/valid-attachments"] == []
        assert chain.calls()[0].stdin["cni.dev/attachments"] == []

    def test_valid_attachments_that_are_not_cached_are_passed(self, runtime: Runtime, chain: Plugins) -> None:
        runtime.garbage_collect(CHAIN, iter([AttachmentKey("elsewhere", "eth0")]))
        for call in chain.calls():
            assert call.stdin["cni.dev/valid-attachments"] == [{"containerID": "elsewhere", "ifname": "eth0"}]

    def test_variables_of_an_attachment_are_set_and_empty(self, runtime: Runtime, chain: Plugins) -> None:
        runtime.garbage_collect(CHAIN, [])
        environment = chain.calls()[0].environment
        assert {key: value for key, value in environment.items() if key.startswith("CNI_")} == {
            "CNI_COMMAND": "GC",
            "CNI_CONTAINERID": "",
            "CNI_NETNS": "",
            "CNI_IFNAME": "",
            "CNI_ARGS": "",
            "CNI_PATH": str(chain.directory),
        }


def test_a_list_may_disable_garbage_collection(runtime: Runtime, attached: Plugins) -> None:
    assert runtime.garbage_collect(CHAIN._replace(disable_gc=True), []) == ()
    assert order(attached) == []
    assert len(runtime.attachments()) == 3


class TestFailures:
    """Garbage collection continues after each failure and reports all of them at the end."""

    def fail(self, runtime: Runtime) -> tuple[str, Sequence[BaseException]]:
        """Returns the message and the single errors."""
        with pytest.raises(CniRuntimeError) as caught:
            runtime.garbage_collect(CHAIN, [B.key])
        causes = caught.value.__cause__
        assert isinstance(causes, ExceptionGroup)
        return str(caught.value), causes.exceptions

    def test_a_failed_del_keeps_the_attachment_for_a_retry(self, runtime: Runtime, attached: Plugins) -> None:
        attached.script("two", DEL=FAILURE)
        assert len(self.fail(runtime)[1]) == 2
        assert order(attached) == ["DEL two a/eth0", "DEL two a/net1", *GC_OF_BOTH]
        attached.script("two")
        assert runtime.garbage_collect(CHAIN, [B.key]) == (A.key, A_SECOND.key)

    def test_a_failed_gc_does_not_stop_the_next_plugin(self, runtime: Runtime, attached: Plugins) -> None:
        attached.script("one", GC=FAILURE)
        [cause] = self.fail(runtime)[1]
        assert order(attached)[-2:] == GC_OF_BOTH
        assert isinstance(cause, PluginCallError)
        assert (cause.plugin, cause.command, cause.code) == ("one", "GC", 11)

    def test_the_error_contains_all_failures(self, runtime: Runtime, attached: Plugins) -> None:
        attached.script("one", DEL=FAILURE, GC=FAILURE)
        assert self.fail(runtime)[0] == (
            "network net: garbage collection incomplete: "
            "attachment a/eth0: plugin one failed (DEL): not now (code 11); "
            "attachment a/net1: plugin one failed (DEL): not now (code 11); plugin one failed (GC): not now (code 11)"
        )

    def test_a_missing_plugin_is_reported(self, runtime: Runtime, attached: Plugins) -> None:
        (attached.directory / "two").unlink()
        assert len(self.fail(runtime)[1]) == 3
        assert order(attached) == ["GC one"]

    def test_a_hanging_plugin_does_not_stop_the_others(
        self, make_runtime: Callable[..., Runtime], runtime: Runtime, attached: Plugins
    ) -> None:
        attached.write("one", "#!/bin/sh\nexec sleep 300\n")
        assert [type(cause) for cause in self.fail(make_runtime(timeout=1.0))[1]] == [PluginTimeoutError] * 3
        assert order(attached) == ["DEL two a/eth0", "DEL two a/net1", "GC two"]

    def test_an_unreadable_cache_is_reported_before_anything_is_detached(self, chain: Plugins, tmp_path: Path) -> None:
        (tmp_path / "results").write_text("")
        with pytest.raises(ResultError, match=rf"{tmp_path}/results: cannot be read: Not a directory"):
            Runtime([str(chain.directory)], cache_dir=str(tmp_path)).garbage_collect(CHAIN, [])
        assert order(chain) == []


def test_entries_without_an_attachment_are_skipped_with_a_warning(
    runtime: Runtime, attached: Plugins, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache" / "results" / "net-x-eth0").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert runtime.garbage_collect(CHAIN, [A.key, A_SECOND.key, B.key]) == ()
    assert "net-x-eth0: the cached result is damaged" in caplog.text
    assert order(attached) == GC_OF_BOTH


def test_garbage_collection_is_idempotent(runtime: Runtime, attached: Plugins) -> None:
    runtime.garbage_collect(CHAIN, [])
    assert runtime.garbage_collect(CHAIN, []) == ()
    runtime.delete(CHAIN, POD)
