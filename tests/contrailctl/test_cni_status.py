"""`contrailctl cni status`: plugins exist, support the version and report ready."""

import json

import pytest

from tests.support.cni_directories import CniDirectories
from tests.support.contrailctl_command import Run
from tests.support.scripted_plugins import PluginOutput


def supporting(*versions: str) -> PluginOutput:
    return PluginOutput(json.dumps({"cniVersion": "1.1.0", "supportedVersions": versions}))


def refusing(code: int) -> PluginOutput:
    error = {"cniVersion": "1.1.0", "code": code, "msg": "agent away", "details": "connection\nrefused"}
    return PluginOutput(json.dumps(error), "", 1)


@pytest.fixture
def newest(bench: CniDirectories) -> CniDirectories:
    bench.configure(cniVersions=["1.1.0"])
    bench.plugins.script("bridge", VERSION=supporting("1.0.0", "1.1.0"))
    return bench


async def test_a_ready_network_has_exit_status_0(contrailctl: Run, newest: CniDirectories) -> None:
    ended = await contrailctl("cni", "status", "net", *newest.directories)
    assert (ended.status, ended.out, ended.err) == (0, "network net is ready\n", "")
    assert [call.command for call in newest.plugins.calls()] == ["VERSION", "STATUS"]


@pytest.mark.parametrize("code", [50, 51])
async def test_a_network_that_is_not_ready_has_exit_status_1(
    contrailctl: Run, newest: CniDirectories, code: int
) -> None:
    newest.plugins.script("bridge", VERSION=supporting("1.1.0"), STATUS=refusing(code))
    ended = await contrailctl("cni", "status", "net", *newest.directories)
    assert (ended.status, ended.err) == (1, "")
    message = f"plugin bridge failed (STATUS): agent away; connection refused (code {code})"
    assert ended.out == f"network net is not ready: {message}\n"


async def test_json_has_readiness_and_code(contrailctl: Run, newest: CniDirectories) -> None:
    ended = await contrailctl("cni", "status", "net", "-o", "json", *newest.directories)
    ready = {"network": "net", "version": "1.1.0", "ready": True, "code": None, "message": ""}
    assert json.loads(ended.out) == ready
    newest.plugins.script("bridge", VERSION=supporting("1.1.0"), STATUS=refusing(50))
    ended = await contrailctl("cni", "status", "net", "-o", "json", *newest.directories)
    assert ended.status == 1
    assert json.loads(ended.out) == ready | {
        "ready": False,
        "code": 50,
        "message": "plugin bridge failed (STATUS): agent away; connection refused (code 50)",
    }


class TestVersionsWithoutStatus:
    async def test_only_supported_versions_are_checked(self, contrailctl: Run, bench: CniDirectories) -> None:
        bench.plugins.script("bridge", VERSION=supporting("1.0.0"))
        ended = await contrailctl("cni", "status", "net", *bench.directories)
        message = "network net: its plugins support CNI 1.0.0, which has no STATUS operation\n"
        assert (ended.status, ended.out) == (0, message)
        assert [call.command for call in bench.plugins.calls()] == ["VERSION"]

    async def test_readiness_is_unknown(self, contrailctl: Run, bench: CniDirectories) -> None:
        bench.plugins.script("bridge", VERSION=supporting("1.0.0"))
        ended = await contrailctl("cni", "status", "net", "-o", "json", *bench.directories)
        assert json.loads(ended.out)["ready"] is None


class TestFailuresOfStatus:
    async def test_a_plugin_that_does_not_support_the_version(self, contrailctl: Run, newest: CniDirectories) -> None:
        newest.plugins.script("bridge", VERSION=supporting("0.4.0", "1.0.0"))
        ended = await contrailctl("cni", "status", "net", *newest.directories)
        assert (ended.status, ended.out) == (1, "")
        message = "network net: CNI version 1.1.0 is not supported by plugin bridge (it supports 0.4.0, 1.0.0)"
        assert ended.err == f"contrailctl: {message}\n"
        assert [call.command for call in newest.plugins.calls()] == ["VERSION"]

    async def test_a_missing_plugin(self, contrailctl: Run, newest: CniDirectories) -> None:
        (newest.plugins.directory / "bridge").unlink()
        ended = await contrailctl("cni", "status", "net", *newest.directories)
        assert ended.status == 1
        assert f"plugin bridge: not found in {newest.plugins.directory}" in ended.err

    async def test_a_plugin_that_hangs(self, contrailctl: Run, newest: CniDirectories) -> None:
        newest.plugins.write("bridge", "#!/bin/sh\nexec sleep 300\n")
        ended = await contrailctl("cni", "status", "net", "--timeout", "0.2", *newest.directories)
        assert ended.status == 1
        assert "timed out and was killed" in ended.err

    async def test_a_missing_network(self, contrailctl: Run, newest: CniDirectories) -> None:
        ended = await contrailctl("cni", "status", "red", *newest.directories)
        assert ended.status == 1
        assert "network 'red': not found in " in ended.err

    async def test_the_network_is_required(self, contrailctl: Run) -> None:
        assert (await contrailctl("cni", "status")).status == 2
