"""`contrailctl get`: tables as in the files of `golden/`, JSON and YAML."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web

from manager.api.types import InterfaceView, NetworkView, PodView
from tests.support import api_views
from tests.support.contrailctl_command import Run
from tests.support.fake_apis import FakeManagerApi, served

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
async def test_a_kind_can_be_singular(contrailctl: Run, manager: str, kind: str) -> None:
    ended = await contrailctl("get", kind.removesuffix("s"), "--manager", manager)
    assert ended.out == golden(kind)


@pytest.mark.parametrize("option", ["-A", "--all-namespaces"])
async def test_all_namespaces_are_the_default(contrailctl: Run, manager: str, option: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "pods", option)
    assert ended.out == golden("pods")


async def test_pods_are_filtered_by_namespace(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "pods", "-n", "shop")
    assert [line.split()[1] for line in ended.out.splitlines()] == ["NAME", "router", "waiting"]


async def test_events_are_filtered_by_name(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "get", "events", "waiting")
    assert [line.split()[0] for line in ended.out.splitlines()] == ["NAMESPACE", "shop"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["pods", "web", "-n", "shop"], "pod shop/web not found"),
        (["networks", "red"], "network red not found"),
        (["interfaces", "web"], "pod web not found"),
        (["events", "-n", "shop", "web"], "events of shop/web not found"),
    ],
)
async def test_a_missing_object_is_a_failure(contrailctl: Run, manager: str, argv: list[str], message: str) -> None:
    ended = await contrailctl("--manager", manager, "get", *argv)
    assert (ended.status, ended.out, ended.err) == (1, "", f"contrailctl: {message}\n")


async def test_an_empty_list_is_a_table_without_rows(
    contrailctl: Run, manager: str, manager_process: FakeManagerApi
) -> None:
    manager_process.events.clear()
    ended = await contrailctl("--manager", manager, "get", "events")
    assert ended.status == 0
    assert ended.out == "NAMESPACE   LAST SEEN   TYPE   REASON   OBJECT   COUNT   MESSAGE\n"


class TestOtherFormats:
    async def test_json_has_the_items_of_the_manager(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("--manager", manager, "get", "networks", "-o", "json")
        items = json.loads(ended.out)["items"]
        assert msgspec.convert(items, list[NetworkView]) == api_views.NETWORKS
        assert ended.out == json.dumps(json.loads(ended.out), indent=2) + "\n"

    async def test_yaml_has_the_same_items(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("-o", "yaml", "--manager", manager, "get", "pods")
        assert msgspec.convert(yaml.safe_load(ended.out)["items"], list[PodView]) == api_views.PODS

    async def test_json_has_only_the_filtered_items(self, contrailctl: Run, manager: str) -> None:
        ended = await contrailctl("--manager", manager, "get", "interfaces", "router", "-n", "shop", "-o", "json")
        items = msgspec.convert(json.loads(ended.out)["items"], list[InterfaceView])
        assert items == api_views.INTERFACE_VIEWS


class TestAgentAsSource:
    async def test_interfaces_equal_those_of_the_manager(self, contrailctl: Run, agent: str) -> None:
        ended = await contrailctl("--agent", agent, "get", "interfaces", "-n", "shop", "router")
        assert ended.out == golden("interfaces")

    async def test_the_manager_takes_precedence(self, contrailctl: Run, agent: str, manager: str) -> None:
        ended = await contrailctl("--agent", agent, "--manager", manager, "get", "interfaces")
        assert ended.out == golden("interfaces")

    @pytest.mark.parametrize("argv", [[], ["router"], ["-n", "shop"]])
    async def test_namespace_and_name_are_required(self, contrailctl: Run, agent: str, argv: list[str]) -> None:
        ended = await contrailctl("--agent", agent, "get", "interfaces", *argv)
        assert ended.status == 2
        assert ended.err.startswith("contrailctl: an agent serves one pod per request: use -n NAMESPACE")

    async def test_an_unknown_pod_is_reported_with_its_virtual_machine(self, contrailctl: Run, agent: str) -> None:
        ended = await contrailctl("--agent", agent, "--cluster-name", "c2", "get", "interfaces", "-n", "shop", "router")
        assert ended.status == 1
        assert ended.err == f"contrailctl: pod shop/router not found at {agent} (virtual machine c2__shop__router)\n"

    @pytest.mark.parametrize(
        ("keys", "addresses"),
        [
            ({}, "-"),  # a Contrail vrouter agent returns addresses of plugged ports only
            ({"v6-ip-address": "fd00::5", "v6-plen": 64}, "fd00::5/64"),
            ({"v6-ip-address": "fd00::5"}, "fd00::5/64"),  # and no prefix length
        ],
    )
    async def test_a_vrouter_agent_is_supported(
        self, contrailctl: Run, keys: dict[str, str | int], addresses: str
    ) -> None:
        item = {"id": "i", "vm-uuid": "m", "vn-id": "n", "vn-name": "d:p:blue", "mac-address": "02:00:00:00:00:01"}

        async def vm_cfg(_request: web.Request) -> web.Response:
            return web.json_response([item | keys])

        async with served([web.get("/vm-cfg/k8s__shop__web", vm_cfg)]) as vrouter_agent:
            ended = await contrailctl("--agent", vrouter_agent, "get", "interfaces", "-n", "shop", "web")
        row = ["shop", "web", "0", "eth0", "blue", addresses, "02:00:00:00:00:01", "1500"]
        assert ended.out.splitlines()[1].split() == row


async def test_all_pages_are_listed(contrailctl: Run) -> None:
    """The filters are part of each request."""
    pods = api_views.PODS
    asked: list[dict[str, str]] = []

    async def one_by_one(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        position = int(request.query.get("continue", 0))
        following = {"continue": str(position + 1)} if position + 1 < len(pods) else {}
        return web.Response(body=msgspec.json.encode({"items": pods[position : position + 1], **following}))

    async with served([web.get("/v1/pods", one_by_one)]) as url:
        ended = await contrailctl("--manager", url, "get", "pods", "-n", "shop", "-o", "json")
    assert [item["name"] for item in json.loads(ended.out)["items"]] == [pod.name for pod in pods]
    assert asked == [
        {"namespace": "shop", **({"continue": str(number)} if number else {})} for number in range(len(pods))
    ]
