"""Results are cached in libcni's format: cnitool, containerd and this runtime read each other's entries."""

import base64
import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import ResultError
from tests.support.scripted_plugins import POD, Plugins, added, network, result

CNITOOL_ENTRY = (
    '{"kind":"cniCacheV1","containerId":"cnitool-b725e58010fe0de319af","config":"eyJjbmlWZXJzaW9uIjoiMC40LjAiLCJuYW1lIjoi'
    'bmV0IiwicGx1Z2lucyI6W3sidHlwZSI6ImJyaWRnZSJ9XX0K","ifName":"eth0","networkName":"net","cniArgs":[["IgnoreUnknown",'
    '"1"],["K8S_POD_NAME","x"]],"capabilityArgs":{"mac":"02:00:00:00:00:07"},"result":{"cniVersion":"0.4.0","dns":{},'
    '"interfaces":[{"mac":"16:7a:5d:a9:b6:81","name":"veth8d7fa363"},{"mac":"02:00:00:00:00:07","name":"eth0","sandbox":'
    '"/run/netns/ctt-pod"}],"ips":[{"address":"10.99.0.2/24","gateway":"10.99.0.1","interface":1,"version":"4"}]}}'
)
"""An entry written by cnitool 1.1.2."""

CNITOOL_POD = Attachment("cnitool-b725e58010fe0de319af", "/run/netns/ctt-pod", "eth0")

BRIDGE = network("bridge")


@pytest.fixture
def bridge(plugins: Plugins) -> Plugins:
    plugins.script("bridge", ADD=added())
    return plugins


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "results"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


class TestWriting:
    def test_an_entry_has_libcnis_path(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        runtime.add(BRIDGE, POD)
        assert [path.name for path in results.iterdir()] == [f"net-{'c' * 64}-eth0"]

    def test_an_entry_has_libcnis_content(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        pod = Attachment("c1", "/run/netns/pod", "eth0", args=(("A", "1"),), capability_args={"mac": "x"})
        runtime.add(BRIDGE, pod)
        document = json.loads((results / "net-c1-eth0").read_text())
        assert base64.b64decode(document.pop("config")) == BRIDGE.source
        assert document == {
            "kind": "cniCacheV1",
            "containerId": "c1",
            "ifName": "eth0",
            "networkName": "net",
            "netns": "/run/netns/pod",
            "cniArgs": [["A", "1"]],
            "capabilityArgs": {"mac": "x"},
            "result": result(),
        }

    def test_empty_fields_are_omitted(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        runtime.add(BRIDGE, POD)
        assert json.loads(next(results.iterdir()).read_text()).keys().isdisjoint({"cniArgs", "capabilityArgs"})

    def test_an_entry_is_readable_by_root_only(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        runtime.add(BRIDGE, POD)
        assert stat.S_IMODE(results.stat().st_mode) == 0o700
        assert stat.S_IMODE(next(results.iterdir()).stat().st_mode) == 0o600

    def test_a_second_add_replaces_the_entry(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        runtime.add(BRIDGE, POD)
        bridge.script("bridge", ADD=added(result(dns={"domain": "new"})))
        runtime.add(BRIDGE, POD)
        assert len(list(results.iterdir())) == 1
        entry = runtime.cached(BRIDGE, POD)
        assert entry is not None
        assert entry.result["dns"] == {"domain": "new"}

    def test_a_failed_write_leaves_no_partial_file(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        (results / f"net-{'c' * 64}-eth0").mkdir(parents=True)
        with pytest.raises(ResultError, match=r"the result cannot be cached: Is a directory"):
            runtime.add(BRIDGE, POD)
        assert len(list(results.iterdir())) == 1

    def test_attachments_have_separate_entries(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        for container, ifname in (("a", "eth0"), ("a", "eth1"), ("b", "eth0")):
            runtime.add(BRIDGE, Attachment(container, "/run/netns/x", ifname))
        assert len(list(results.iterdir())) == 3
        runtime.delete(BRIDGE, Attachment("a", "", "eth1"))
        assert sorted(path.name for path in results.iterdir()) == ["net-a-eth0", "net-b-eth0"]


class TestReading:
    def test_an_entry_of_cnitool_is_read(self, runtime: Runtime, results: Path) -> None:
        write(results / "net-cnitool-b725e58010fe0de319af-eth0", CNITOOL_ENTRY)
        entry = runtime.cached(network("bridge", version="0.4.0"), CNITOOL_POD)
        assert entry is not None
        assert json.loads(entry.source)["plugins"] == [{"type": "bridge"}]
        assert entry.args == (("IgnoreUnknown", "1"), ("K8S_POD_NAME", "x"))
        assert entry.capability_args == {"mac": "02:00:00:00:00:07"}
        assert entry.result["ips"][0]["address"] == "10.99.0.2/24"

    @pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
    def test_a_cached_result_is_passed_to_plugins(
        self, runtime: Runtime, bridge: Plugins, results: Path, version: str
    ) -> None:
        write(results / "net-cnitool-b725e58010fe0de319af-eth0", CNITOOL_ENTRY)
        runtime.check(network("bridge", version=version), CNITOOL_POD)
        given = bridge.calls()[0].stdin["prevResult"]
        assert given["cniVersion"] == version
        assert ("version" in given["ips"][0]) == (version == "0.4.0")

    def test_libcnis_old_format_is_read(self, runtime: Runtime, bridge: Plugins, results: Path) -> None:
        write(results / f"net-{'c' * 64}-eth0", json.dumps(result("0.4.0")))
        runtime.check(BRIDGE, POD)
        assert bridge.calls()[0].stdin["prevResult"] == result("1.0.0")

    def test_an_entry_round_trips(self, make_runtime: Callable[..., Runtime], bridge: Plugins) -> None:
        pod = Attachment("c1", "/run/netns/pod", "eth0", args=(("A", "1"), ("A", "2")), capability_args={"ips": ["x"]})
        make_runtime().add(BRIDGE, pod)
        entry = make_runtime().cached(BRIDGE, pod)
        assert entry is not None
        assert (entry.result, entry.source) == (result(), BRIDGE.source)
        assert (entry.args, entry.capability_args) == (pod.args, pod.capability_args)


DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    '{"kind": "cniCacheV1"}',
    '{"kind": "cniCacheV1", "result": 7}',
    '{"kind": "cniCacheV1", "result": {}, "config": "!"}',
    '{"kind": "cniCacheV1", "result": {}, "cniArgs": [["A"]]}',
    '{"kind": "cniCacheV1", "result": {"cniVersion": "9"}}',
]


@pytest.mark.parametrize("text", DAMAGED)
class TestDamage:
    def test_del_continues_without_a_damaged_entry_and_removes_it(
        self, runtime: Runtime, bridge: Plugins, results: Path, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(results / f"net-{'c' * 64}-eth0", text)
        with caplog.at_level(logging.WARNING):
            runtime.delete(BRIDGE, POD)
        assert "prevResult" not in bridge.calls()[0].stdin
        assert list(results.iterdir()) == []
        assert "DEL continues without the result of the ADD" in caplog.text

    def test_check_reports_a_damaged_entry(self, runtime: Runtime, bridge: Plugins, results: Path, text: str) -> None:
        write(results / f"net-{'c' * 64}-eth0", text)
        with pytest.raises(ResultError):
            runtime.check(BRIDGE, POD)
        assert bridge.calls() == []


def test_an_unusable_cache_is_reported_with_its_path(bridge: Plugins, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    runtime = Runtime([str(bridge.directory)], cache_dir=str(tmp_path))
    operations: list[Callable[[], Any]] = [
        lambda: runtime.add(BRIDGE, POD),
        lambda: runtime.check(BRIDGE, POD),
        lambda: runtime.delete(BRIDGE, POD),
    ]
    for operation in operations:
        with pytest.raises(ResultError, match=rf"{tmp_path}/results/net-c+-eth0: .*(directory|exists)"):
            operation()
