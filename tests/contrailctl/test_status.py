"""`contrailctl status`: readiness of manager and agent, object counts, and the missing datapath."""

import json
from importlib.metadata import version

import msgspec
import pytest
from aiohttp import web

from contrailctl.status import NO_DATAPATH
from tests.support.contrailctl_command import CommandOutcome, Run
from tests.support.fake_apis import FakeAgentApi, FakeManagerApi, served


def row(ended: CommandOutcome, component: str) -> list[str]:
    """Returns the cells of a component's line: URL, state, version, reasons."""
    line = next(line for line in ended.out.splitlines() if line.startswith(component))
    return [cell.strip() for cell in line.split("   ") if cell][1:]


async def test_both_are_ready(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.status == 0
    assert row(ended, "manager") == [manager, "Ready", "0.1.0", "-"]
    assert row(ended, "agent") == [agent, "Ready", "0.1.0", "-"]


async def test_objects_of_the_manager_are_counted(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.out.splitlines()[4:8] == [
        "networks: 2",
        "pods: 3 (1 Ready, 1 Waiting, 0 Refused, 1 HostNetwork, 0 Excluded)",
        "interfaces: 3",
        f"contrailctl: {version('contrail-multinet')}",
    ]


async def test_the_missing_datapath_is_stated(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.out.endswith(f"\n\n{NO_DATAPATH}\n")
    assert "without a vrouter" in NO_DATAPATH


async def test_a_linux_datapath_is_not_missing(contrailctl: Run, manager: str) -> None:
    async def ready(_request: web.Request) -> web.Response:
        return web.json_response({"ready": True, "reasons": [], "datapath": "linux"})

    async with served([web.get("/readyz", ready)]) as agent:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert NO_DATAPATH not in ended.out


async def test_a_component_that_is_not_ready_has_its_reasons(
    contrailctl: Run, manager: str, agent: str, manager_process: FakeManagerApi
) -> None:
    manager_process.reasons = ["the store is locked", "not listed yet"]
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.status == 1
    assert row(ended, "manager") == [manager, "NotReady", "0.1.0", "the store is locked; not listed yet"]


async def test_reasons_of_a_ready_agent_are_shown_with_exit_status_0(contrailctl: Run, manager: str) -> None:
    async def ready(_request: web.Request) -> web.Response:
        return web.json_response({"ready": True, "reasons": ["datapath: pod shop/p1: eth1: no host end"]})

    async with served([web.get("/readyz", ready)]) as agent:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.status == 0
    assert row(ended, "agent") == [agent, "Ready", "unknown", "datapath: pod shop/p1: eth1: no host end"]


async def test_a_standby_manager_is_ready_and_names_the_leader(
    contrailctl: Run, agent: str, manager_process: FakeManagerApi
) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"error": "this manager is on standby: the leader is other"}, status=503)

    pages = [route for route in manager_process.routes() if not route.path.startswith("/v1/")]
    async with served([*pages, web.get("/v1/{kind}", refuse)]) as standby:
        ended = await contrailctl("--manager", standby, "--agent", agent, "status")
    assert ended.status == 0
    assert row(ended, "manager") == [standby, "Ready", "0.1.0", "-"]
    message = f"{standby}/v1/summary: this manager is on standby: the leader is other (status 503)"
    assert f"objects: cannot be counted: {message}" in ended.out.splitlines()


async def test_the_agent_is_shown_without_the_manager(contrailctl: Run, unreachable_url: str, agent: str) -> None:
    ended = await contrailctl("--manager", unreachable_url, "--agent", agent, "status")
    assert ended.status == 1
    assert row(ended, "manager") == [unreachable_url, "Unreachable", "unknown", "Connection refused"]
    assert row(ended, "agent")[1] == "Ready"
    assert "networks:" not in ended.out


async def test_an_absent_version_is_unknown(
    contrailctl: Run, manager: str, agent: str, agent_process: FakeAgentApi
) -> None:
    agent_process.version = None
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert row(ended, "agent") == [agent, "Ready", "unknown", "-"]


async def test_the_version_is_unknown_without_healthz(contrailctl: Run, manager: str) -> None:
    async with served(FakeAgentApi().routes()[:1]) as agent:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert (ended.status, row(ended, "agent")) == (0, [agent, "Ready", "unknown", "-"])


async def test_a_vrouter_agent_without_readyz_is_not_ready(contrailctl: Run, manager: str) -> None:
    async with served([]) as vrouter_agent:
        ended = await contrailctl("--manager", manager, "--agent", vrouter_agent, "status")
    assert ended.status == 1
    assert row(ended, "agent")[1] == "NotReady"
    assert "/readyz: invalid response" in ended.out


async def test_a_failed_request_is_reported(contrailctl: Run, agent: str) -> None:
    async def broken(_request: web.Request) -> web.Response:
        return web.json_response({"error": "disk full"}, status=500)

    routes = [*FakeManagerApi().routes()[:2], web.get("/v1/{kind}", broken)]
    async with served(routes) as manager:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert f"objects: cannot be counted: {manager}/v1/summary: disk full (status 500)\n" in ended.out


@pytest.mark.parametrize("place", ["environment", "options"])
async def test_urls_come_from_options_or_the_environment(
    contrailctl: Run, manager: str, agent: str, unreachable_url: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    named_there = place == "environment"
    monkeypatch.setenv("CONTRAIL_MANAGER", manager if named_there else unreachable_url)
    monkeypatch.setenv("CONTRAIL_AGENT", agent if named_there else unreachable_url)
    ended = await contrailctl("status", *([] if named_there else ["--manager", manager, "--agent", agent]))
    assert ended.status == 0


async def test_json_has_components_and_counts(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status", "-o", "json")
    document = json.loads(ended.out)
    assert [component["state"] for component in document["components"]] == ["Ready", "Ready"]
    assert document["counts"]["networks"] == "2"
    assert msgspec.json.decode(ended.out) == document
