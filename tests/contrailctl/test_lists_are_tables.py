"""`contrailctl get`: what operators see, column for column (the files in `golden/`)."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web

from manager.api.types import InterfaceView, NetworkView, PodView
from tests.support import views
from tests.support.command import Run
from tests.support.fake_apis import ManagerProcess, served

GOLDEN = Path(__file__).parent / "golden"

KINDS = ("networks", "pods", "interfaces", "events")


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_table_is_aligned_and_complete(contrailctl: Run, manager: str, kind: str) -> None:
    ended = await contrailctl("--manager", manager, "get", kind)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == golden(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_is_known_by_its_singular_too(contrailctl: Run, manager: str, kind: str) -> None:
    ended = await contrailctl("get", kind.removesuffix("s"), "--manager", manager)
    assert ended.out == golden(kind)


@pytest.mark.parametrize("option", ["-A", "--all-namespaces"])
async def test_all_namespaces_are_the_default(contrailctl: Run, manager: str, option: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "pods", option)
    assert ended.out == golden("pods")


async def test_a_namespace_chooses(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "pods", "-n", "shop")
    assert [line.split()[1] for line in ended.out.splitlines()] == ["NAME", "router", "waiting"]


async def test_a_name_chooses(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "events", "waiting")
    assert [line.split()[0] for line in ended.out.splitlines()] == ["NAMESPACE", "shop"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["pods", "web", "-n", "shop"], "pod shop/web not found"),
        (["networks", "red"], "network red not found"),
        (["interfaces", "web"], "pod web not found"),
        (["events", "-n", "shop", "web"], "events of shop/web not found"),
    ],
)
async def test_a_name_that_is_not_there_is_a_failure(
    contrailctl: Run, manager: str, argv: list[str], said: str
) -> None:
    ended = await contrailctl("--manager", manager, "get", *argv)
    assert (ended.status, ended.out, ended.err) == (1, "", f"contrailctl: {said}\n")


async def test_nothing_at_all_is_a_table_without_rows(
    contrailctl: Run, manager: str, manager_process: ManagerProcess
) -> None:
    manager_process.events.clear()
    ended = await contrailctl("--manager", manager, "get", "events")
    assert ended.status == 0
    assert ended.out == "NAMESPACE   LAST SEEN   TYPE   REASON   OBJECT   COUNT   MESSAGE\n"


class TestOtherForms:
    async def test_json_is_what_the_manager_served(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("--manager", manager, "get", "networks", "-o", "json")
        items = json.loads(ended.out)["items"]
        assert msgspec.convert(items, list[NetworkView]) == views.NETWORKS
        assert ended.out == json.dumps(json.loads(ended.out), indent=2) + "\n"

    async def test_yaml_is_the_same(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("-o", "yaml", "--manager", manager, "get", "pods")
        assert msgspec.convert(yaml.safe_load(ended.out)["items"], list[PodView]) == views.PODS

    async def test_it_holds_what_was_chosen_alone(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("--manager", manager, "get", "interfaces", "router", "-n", "shop", "-o", "json")
        items = msgspec.convert(json.loads(ended.out)["items"], list[InterfaceView])
        assert items == views.INTERFACE_VIEWS


class TestAskingAnAgent:
    async def test_a_pods_interfaces_are_those_that_the_manager_tells(self, contrailctl: Run, agent: str) -> None:
        ended = await contrailctl("--agent", agent, "get", "interfaces", "-n", "shop", "router")
        assert ended.out == golden("interfaces")

    async def test_the_manager_is_asked_where_both_are_named(self, contrailctl: Run, agent: str, manager: str) -> None:
        ended = await contrailctl("--agent", agent, "--manager", manager, "get", "interfaces")
        assert ended.out == golden("interfaces")

    @pytest.mark.parametrize("argv", [[], ["router"], ["-n", "shop"]])
    async def test_it_answers_for_one_pod_at_a_time(self, contrailctl: Run, agent: str, argv: list[str]) -> None:
        ended = await contrailctl("--agent", agent, "get", "interfaces", *argv)
        assert ended.status == 2
        assert ended.err.startswith("contrailctl: an agent serves one pod per request: use -n NAMESPACE")

    async def test_a_pod_that_it_does_not_know_is_told_with_its_machine(self, contrailctl: Run, agent: str) -> None:
        ended = await contrailctl("--agent", agent, "--cluster-name", "c2", "get", "interfaces", "-n", "shop", "router")
        assert ended.status == 1
        assert ended.err == f"contrailctl: pod shop/router not found at {agent} (virtual machine c2__shop__router)\n"

    @pytest.mark.parametrize(
        ("keys", "addresses"),
        [
            ({}, "-"),  # upstream's tells addresses of plugged ports alone
            ({"v6-ip-address": "fd00::5", "v6-plen": 64}, "fd00::5/64"),
            ({"v6-ip-address": "fd00::5"}, "fd00::5/64"),  # nor does it tell their prefix
        ],
    )
    async def test_a_stock_agent_is_understood_too(
        self, contrailctl: Run, keys: dict[str, str | int], addresses: str
    ) -> None:
        item = {"id": "i", "vm-uuid": "m", "vn-id": "n", "vn-name": "d:p:blue", "mac-address": "02:00:00:00:00:01"}

        async def vm_cfg(_request: web.Request) -> web.Response:
            return web.json_response([item | keys])

        async with served([web.get("/vm-cfg/k8s__shop__web", vm_cfg)]) as stock:
            ended = await contrailctl("--agent", stock, "get", "interfaces", "-n", "shop", "web")
        row = ["shop", "web", "0", "eth0", "blue", addresses, "02:00:00:00:00:01", "1500"]
        assert ended.out.splitlines()[1].split() == row
