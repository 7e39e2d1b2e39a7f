"""`contrailctl cni`: ADD, CHECK and DEL of a network configuration list on a network namespace."""

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cni_contrail.runtime.sandbox import inside
from contrailctl.cli import main
from tests.support.cni_directories import CniDirectories
from tests.support.contrailctl_command import Run
from tests.support.netns import Netns
from tests.support.scripted_plugins import PluginOutput, result


class TestAdd:
    async def test_the_result_is_printed(self, contrailctl: Run, bench: CniDirectories) -> None:
        ended = await contrailctl("cni", "add", "net", "/run/netns/x", *bench.options)
        assert (ended.status, ended.err) == (0, "")
        assert json.loads(ended.out) == result()

    async def test_the_defaults_are_those_of_cnitool(self, contrailctl: Run, bench: CniDirectories) -> None:
        await contrailctl("cni", "add", "net", "/run/netns/x", *bench.options)
        environment = bench.plugins.calls()[0].environment
        digest = hashlib.sha512(b"/run/netns/x").hexdigest()
        assert environment["CNI_CONTAINERID"] == f"cnitool-{digest[:20]}"
        assert (environment["CNI_IFNAME"], environment["CNI_ARGS"]) == ("eth0", "")
        assert environment["CNI_PATH"] == str(bench.plugins.directory)

    async def test_all_parameters_are_passed(self, contrailctl: Run, bench: CniDirectories) -> None:
        parameters = [
            "--container-id",
            "c1",
            "--ifname",
            "net1",
            "--args",
            "A=1;B=2",
            "--capability-args",
            '{"mac": "x"}',
        ]
        await contrailctl("cni", "add", "net", "/run/netns/x", *parameters, *bench.options)
        call = bench.plugins.calls()[0]
        assert call.environment["CNI_CONTAINERID"] == "c1"
        assert call.environment["CNI_IFNAME"] == "net1"
        assert call.environment["CNI_ARGS"] == "A=1;B=2"
        assert call.stdin["runtimeConfig"] == {"mac": "x"}
        assert [path.name for path in (bench.cache / "results").iterdir()] == ["net-c1-net1"]

    async def test_the_network_can_be_a_file(self, contrailctl: Run, bench: CniDirectories, tmp_path: Path) -> None:
        single = tmp_path / "mine.conf"
        single.write_text(json.dumps({"cniVersion": "1.0.0", "name": "mine", "type": "bridge"}))
        assert (await contrailctl("cni", "add", str(single), "x", *bench.options)).status == 0
        assert bench.plugins.calls()[0].stdin["name"] == "mine"

    async def test_the_namespace_can_be_a_name(self, contrailctl: Run, bench: CniDirectories) -> None:
        await contrailctl("cni", "add", "net", "x", *bench.options)
        assert bench.plugins.calls()[0].environment["CNI_NETNS"] == "/run/netns/x"

    async def test_plugins_are_searched_in_cni_path(
        self, contrailctl: Run, bench: CniDirectories, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CNI_PATH", f"/nowhere::{bench.plugins.directory}")
        where = ["--conf-dir", str(bench.confs), "--cache-dir", str(bench.cache)]
        assert (await contrailctl("cni", "add", "net", "x", *where)).status == 0
        assert bench.plugins.calls()[0].environment["CNI_PATH"] == f"/nowhere:{bench.plugins.directory}"

    async def test_the_result_can_be_yaml(self, contrailctl: Run, bench: CniDirectories) -> None:
        ended = await contrailctl("cni", "add", "net", "x", "-o", "yaml", *bench.options)
        assert ended.out.startswith("cniVersion: 1.0.0\n")


class TestCheckAndDel:
    @pytest.mark.parametrize("operation", ["check", "del"])
    async def test_success_prints_nothing(self, contrailctl: Run, bench: CniDirectories, operation: str) -> None:
        await contrailctl("cni", "add", "net", "x", *bench.options)
        ended = await contrailctl("cni", operation, "net", "x", *bench.options)
        assert (ended.status, ended.out, ended.err) == (0, "", "")

    @pytest.mark.parametrize("operation", ["check", "del"])
    async def test_the_parameters_of_add_are_the_default(
        self, contrailctl: Run, bench: CniDirectories, operation: str
    ) -> None:
        parameters = ["--args", "A=1", "--capability-args", '{"mac": "x"}']
        await contrailctl("cni", "add", "net", "x", *parameters, *bench.options)
        await contrailctl("cni", operation, "net", "x", *bench.options)
        call = bench.plugins.calls()[1]
        assert call.environment["CNI_ARGS"] == "A=1"
        assert call.stdin["runtimeConfig"] == {"mac": "x"}

    async def test_parameters_of_the_command_line_take_precedence(
        self, contrailctl: Run, bench: CniDirectories
    ) -> None:
        await contrailctl("cni", "add", "net", "x", "--args", "A=1", *bench.options)
        await contrailctl("cni", "del", "net", "x", "--args", "A=2", *bench.options)
        assert bench.plugins.calls()[1].environment["CNI_ARGS"] == "A=2"

    async def test_del_continues_with_a_damaged_cache(self, contrailctl: Run, bench: CniDirectories) -> None:
        await contrailctl("cni", "add", "net", "x", "--container-id", "c1", *bench.options)
        (bench.cache / "results" / "net-c1-eth0").write_text("{")
        ended = await contrailctl("cni", "del", "net", "x", "--container-id", "c1", *bench.options)
        assert ended.status == 0
        assert list((bench.cache / "results").iterdir()) == []

    async def test_check_reports_a_damaged_cache(self, contrailctl: Run, bench: CniDirectories) -> None:
        await contrailctl("cni", "add", "net", "x", "--container-id", "c1", *bench.options)
        (bench.cache / "results" / "net-c1-eth0").write_text("{")
        ended = await contrailctl("cni", "check", "net", "x", "--container-id", "c1", *bench.options)
        assert ended.status == 1
        assert "net-c1-eth0: the cached result is damaged" in ended.err


class TestFailures:
    async def test_a_plugins_error_is_one_line(self, contrailctl: Run, bench: CniDirectories) -> None:
        failure = {"code": 11, "msg": "agent away", "details": "two\nlines"}
        bench.plugins.script("bridge", ADD=PluginOutput(json.dumps(failure), status=1))
        ended = await contrailctl("cni", "add", "net", "x", *bench.options)
        assert (ended.status, ended.out) == (1, "")
        assert ended.err == "contrailctl: plugin bridge failed (ADD): agent away; two lines (code 11)\n"

    async def test_a_missing_network_is_reported(self, contrailctl: Run, bench: CniDirectories) -> None:
        ended = await contrailctl("cni", "add", "red", "x", *bench.options)
        assert ended.status == 1
        assert ended.err == f"contrailctl: network 'red': not found in {bench.confs}\n"

    async def test_the_operation_times_out(self, contrailctl: Run, bench: CniDirectories) -> None:
        bench.plugins.write("bridge", "#!/bin/sh\nexec sleep 300\n")
        ended = await contrailctl("cni", "add", "net", "x", "--timeout", "0.2", *bench.options)
        assert ended.status == 1
        assert "timed out and was killed" in ended.err

    @pytest.mark.parametrize(
        ("option", "value", "message"),
        [
            ("--ifname", "a/b", "interface name 'a/b'"),
            ("--container-id", "-x", "argument --container-id: expected one argument"),
            ("--container-id", "a b", "container ID 'a b'"),
            ("--args", "A", "argument 'A': must be KEY=VALUE"),
            ("--capability-args", "[]", "--capability-args: '[]' is not a JSON object"),
            ("--capability-args", "{", "--capability-args: '{' is not a JSON object"),
        ],
    )
    async def test_an_invalid_argument_is_a_usage_error(
        self, contrailctl: Run, bench: CniDirectories, option: str, value: str, message: str
    ) -> None:
        ended = await contrailctl("cni", "add", "net", "x", *bench.options, option, value)
        assert ended.status == 2
        assert message in ended.err
        assert bench.plugins.calls() == []


def test_a_real_bridge_is_attached_and_detached(
    make_netns: Callable[[str], Netns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node, pod = make_netns("node"), make_netns("pod")
    ipam = {"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": str(tmp_path / "ipam")}
    conflist = tmp_path / "10-real.conflist"
    bridge = {"type": "bridge", "bridge": "ctbr0", "ipam": ipam}
    conflist.write_text(json.dumps({"cniVersion": "1.0.0", "name": "real", "plugins": [bridge]}))
    options = [str(conflist), pod.name, "--bin-dir", "/usr/lib/cni", "--cache-dir", str(tmp_path)]
    with inside(node.path):
        assert main(["cni", "add", *options]) == 0
        assert json.loads(capsys.readouterr().out)["ips"][0]["address"] == "10.99.0.2/24"
        assert pod.links() == ["eth0"]
        assert main(["cni", "check", *options]) == 0
        assert main(["cni", "del", *options]) == 0
        assert main(["cni", "del", *options]) == 0
    assert pod.links() == []


def test_gc_detaches_a_real_bridge_of_a_stale_container(
    make_netns: Callable[[str], Netns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node, stale, valid = make_netns("node"), make_netns("stale"), make_netns("valid")
    ipam = {"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": str(tmp_path / "ipam")}
    conflist = tmp_path / "10-real.conflist"
    bridge = {"type": "bridge", "bridge": "ctbr0", "ipam": ipam}
    conflist.write_text(json.dumps({"cniVersion": "0.4.0", "name": "real", "plugins": [bridge]}))
    options = ["--bin-dir", "/usr/lib/cni", "--cache-dir", str(tmp_path)]
    with inside(node.path):
        assert main(["cni", "status", str(conflist), "--bin-dir", "/usr/lib/cni"]) == 0
        assert "support CNI 0.4.0, which has no STATUS" in capsys.readouterr().out
        assert main(["cni", "add", str(conflist), stale.path, "--container-id", "stale", *options]) == 0
        assert main(["cni", "add", str(conflist), valid.path, "--container-id", "valid", *options]) == 0
        stale.delete()
        capsys.readouterr()
        assert main(["cni", "gc", str(conflist), "--valid", "valid/eth0", *options]) == 0
        assert capsys.readouterr().out == "detached stale/eth0\n"
        reserved = {path.name for path in (tmp_path / "ipam" / "real").iterdir() if path.name[0].isdigit()}
        assert reserved == {"10.99.0.3"}
        assert main(["cni", "gc", str(conflist), "--none-valid", *options]) == 0
    assert valid.links() == []


class TestInterrupts:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_ends_command_and_plugin(self, bench: CniDirectories, number: signal.Signals) -> None:
        started = bench.plugins.directory / "started"
        os.mkfifo(started)
        bench.plugins.write("bridge", f"#!/bin/sh\necho $$ > {started}\nexec sleep 300\n")
        program = "from contrailctl.cli import main; raise SystemExit(main())"
        command = [sys.executable, "-c", program, "cni", "add", "net", "/run/netns/x", *bench.options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            plugin = os.pidfd_open(int(started.read_text()))
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        with open(plugin, "rb", buffering=0) as ended:
            assert select.select([ended], [], [], 10)[0]
        assert (process.returncode, out, err) == (130, "", "contrailctl: interrupted\n")
