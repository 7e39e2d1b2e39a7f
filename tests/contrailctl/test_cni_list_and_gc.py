"""`contrailctl cni list` shows cached attachments; `gc` detaches those that are not valid."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cni_directories import CniDirectories
from tests.support.contrailctl_command import Run
from tests.support.netns import Netns
from tests.support.scripted_plugins import PluginOutput, added, result

ATTACHED = ("c1/eth0", "c1/net1", "c2/eth0")


async def attach(contrailctl: Run, bench: CniDirectories, *attachments: str) -> None:
    for attachment in attachments:
        container_id, ifname = attachment.split("/")
        named = ["--container-id", container_id, "--ifname", ifname]
        assert (await contrailctl("cni", "add", "net", container_id, *named, *bench.options)).status == 0
    bench.plugins.forget_calls()


def called(bench: CniDirectories) -> list[str]:
    return [
        f"{call.command} {call.environment['CNI_CONTAINERID']}/{call.environment['CNI_IFNAME']}"
        for call in bench.plugins.calls()
    ]


class TestList:
    async def test_attachments_have_the_form_that_gc_accepts(
        self, contrailctl: Run, bench: CniDirectories, make_netns: Callable[[str], Netns]
    ) -> None:
        sandbox = make_netns("c3").path
        await attach(contrailctl, bench, *ATTACHED)
        await contrailctl("cni", "add", "net", sandbox, "--container-id", "c3", *bench.options)
        ended = await contrailctl("cni", "list", *bench.cached)
        assert (ended.status, ended.err) == (0, "")
        assert [re.split(" {2,}", line) for line in ended.out.splitlines()] == [
            ["NETWORK", "ATTACHMENT", "NAMESPACE", "ADDRESSES"],
            ["net", "c1/eth0", "/run/netns/c1 (gone)", "10.1.0.5/24"],
            ["net", "c1/net1", "/run/netns/c1 (gone)", "10.1.0.5/24"],
            ["net", "c2/eth0", "/run/netns/c2 (gone)", "10.1.0.5/24"],
            ["net", "c3/eth0", sandbox, "10.1.0.5/24"],
        ]

    async def test_attachments_without_a_namespace_are_marked_gone(
        self, contrailctl: Run, bench: CniDirectories, make_netns: Callable[[str], Netns], tmp_path: Path
    ) -> None:
        """Also if another file is at its path now: GC must detach them too."""
        (tmp_path / "no-netns").touch()
        places = [make_netns("c1").path, "/run/netns/not-there", str(tmp_path / "no-netns")]
        for number, place in enumerate(places):
            await contrailctl("cni", "add", "net", place, "--container-id", f"c{number}", *bench.options)
        ended = await contrailctl("cni", "list", "-o", "json", *bench.cached)
        assert [(view["namespace"], view["gone"]) for view in json.loads(ended.out)] == [
            (places[0], False),
            (places[1], True),
            (places[2], True),
        ]

    async def test_an_attachment_without_a_namespace_is_not_gone(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, "c1/eth0")
        entry = bench.cache / "results" / "net-c1-eth0"
        entry.write_text(json.dumps(json.loads(entry.read_text()) | {"netns": ""}))
        assert (await contrailctl("cni", "list", *bench.cached)).out.endswith("c1/eth0      -           10.1.0.5/24\n")

    async def test_attachments_are_filtered_by_container(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, *ATTACHED)
        ended = await contrailctl("cni", "list", "--container-id", "c1", "-o", "json", *bench.cached)
        assert [view["attachment"] for view in json.loads(ended.out)] == ["c1/eth0", "c1/net1"]

    async def test_addresses_of_every_cni_version_are_shown(self, contrailctl: Run, bench: CniDirectories) -> None:
        bench.configure(cniVersion="0.1.0")
        flat = {"ip4": {"ip": "10.9.0.5/24"}, "ip6": {"ip": "fd00::5/64"}}
        bench.plugins.script("bridge", ADD=added(flat))
        await attach(contrailctl, bench, "c1/eth0")
        assert (await contrailctl("cni", "list", *bench.cached)).out.endswith("10.9.0.5/24, fd00::5/64\n")

    async def test_an_invalid_result_is_shown_without_addresses(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, "c1/eth0")
        entry = bench.cache / "results" / "net-c1-eth0"
        entry.write_text(json.dumps(json.loads(entry.read_text()) | {"result": {"cniVersion": "9.9.9"}}))
        assert (await contrailctl("cni", "list", *bench.cached)).out.endswith("c1/eth0      /run/netns/c1 (gone)   -\n")

    async def test_without_attachments_only_the_header_is_shown(self, contrailctl: Run, bench: CniDirectories) -> None:
        ended = await contrailctl("cni", "list", *bench.cached)
        assert (ended.status, ended.out) == (0, "NETWORK   ATTACHMENT   NAMESPACE   ADDRESSES\n")


class TestGc:
    async def test_stale_attachments_are_detached_and_printed(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, *ATTACHED)
        ended = await contrailctl("cni", "gc", "net", "--valid", "c1/eth0", *bench.options)
        assert (ended.status, ended.out, ended.err) == (0, "detached c1/net1\ndetached c2/eth0\n", "")
        assert called(bench) == ["DEL c1/net1", "DEL c2/eth0"]

    @pytest.mark.parametrize("valid", [["--valid", "c1/eth0", "c2/eth0"], ["--valid", "c1/eth0", "--valid", "c2/eth0"]])
    async def test_several_attachments_can_be_valid(
        self, contrailctl: Run, bench: CniDirectories, valid: list[str]
    ) -> None:
        await attach(contrailctl, bench, *ATTACHED)
        ended = await contrailctl("cni", "gc", "net", *valid, "-o", "json", *bench.options)
        assert json.loads(ended.out) == ["c1/net1"]

    async def test_valid_attachments_are_kept(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, "c1/eth0")
        ended = await contrailctl("cni", "gc", "net", "--valid", "c1/eth0", *bench.options)
        assert (ended.status, ended.out, ended.err) == (0, "", "")
        assert called(bench) == []

    async def test_plugins_of_cni_1_1_0_get_the_valid_attachments(
        self, contrailctl: Run, bench: CniDirectories
    ) -> None:
        bench.configure(cniVersions=["1.1.0"])
        await contrailctl("cni", "gc", "net", "--valid", "c1/eth0", *bench.options)
        call = bench.plugins.calls()[0]
        assert call.command == "GC"
        assert call.stdin["cni.dev/valid-attachments"] == [{"containerID": "c1", "ifname": "eth0"}]

    async def test_no_valid_attachments_needs_an_explicit_option(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, *ATTACHED)
        ended = await contrailctl("cni", "gc", "net", *bench.options)
        assert ended.status == 2
        assert "one of the arguments --valid --none-valid is required" in ended.err
        assert called(bench) == []
        ended = await contrailctl("cni", "gc", "net", "--none-valid", *bench.options)
        assert ended.out.splitlines() == [f"detached {attachment}" for attachment in ATTACHED]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["net", "--valid"], "expected at least one argument"),
            (["net", "--valid", "c1"], "attachment 'c1': must be CONTAINER/INTERFACE"),
            (["net", "--valid", "c1/"], "interface name ''"),
            (["net", "--valid", "c1/eth0", "--none-valid"], "not allowed with argument"),
            (["--valid", "c1/eth0", "net"], "must be CONTAINER/INTERFACE"),
        ],
    )
    async def test_a_usage_error_detaches_nothing(
        self, contrailctl: Run, bench: CniDirectories, arguments: list[str], message: str
    ) -> None:
        await attach(contrailctl, bench, *ATTACHED)
        ended = await contrailctl("cni", "gc", *arguments, *bench.options)
        assert ended.status == 2
        assert message in ended.err
        assert called(bench) == []

    async def test_failed_detachments_are_reported(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, "c1/eth0", "c2/eth0")
        bench.plugins.script("bridge", DEL=PluginOutput('{"code": 11, "msg": "not now"}', "", 1))
        ended = await contrailctl("cni", "gc", "net", "--none-valid", *bench.options)
        assert (ended.status, ended.out) == (1, "")
        assert ended.err == (
            "contrailctl: network net: garbage collection incomplete: "
            "attachment c1/eth0: plugin bridge failed (DEL): not now (code 11); "
            "attachment c2/eth0: plugin bridge failed (DEL): not now (code 11)\n"
        )

    async def test_disable_gc_is_reported(self, contrailctl: Run, bench: CniDirectories) -> None:
        await attach(contrailctl, bench, "c1/eth0")
        bench.configure(disableGC=True)
        ended = await contrailctl("cni", "gc", "net", "--none-valid", *bench.options)
        assert (ended.status, ended.out) == (0, "network net disables garbage collection: nothing to do\n")
        assert called(bench) == []


async def test_add_after_gc_creates_a_new_attachment(contrailctl: Run, bench: CniDirectories) -> None:
    await attach(contrailctl, bench, "c1/eth0")
    await contrailctl("cni", "gc", "net", "--none-valid", *bench.options)
    ended = await contrailctl("cni", "add", "net", "c1", "--container-id", "c1", *bench.options)
    assert json.loads(ended.out) == result()
