"""`contrailctl status`: manager and agent, what they hold, and what nobody does yet."""

import json
from importlib.metadata import version

import msgspec
import pytest
from aiohttp import web

from contrailctl.status import NO_DATAPATH
from tests.support.command import Ended, Run
from tests.support.fake_apis import AgentProcess, ManagerProcess, served


def row(ended: Ended, component: str) -> list[str]:
    """The cells of a component's line: url, state, version, reasons."""
    line = next(line for line in ended.out.splitlines() if line.startswith(component))
    return [cell.strip() for cell in line.split("   ") if cell][1:]


async def test_both_are_ready(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.status == 0
    assert row(ended, "manager") == [manager, "Ready", "0.1.0", "-"]
    assert row(ended, "agent") == [agent, "Ready", "0.1.0", "-"]


async def test_what_the_manager_holds_is_counted(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.out.splitlines()[4:9] == [
        "networks: 2",
        "pods: 3 (1 Ready, 1 Waiting, 0 Refused, 1 HostNetwork)",
        "interfaces: 3",
        "events: 2 (1 warnings)",
        f"contrailctl: {version('contrail-multinet')}",
    ]


async def test_it_says_plainly_that_nothing_forwards_packets(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.out.endswith(f"\n\n{NO_DATAPATH}\n")
    assert "Without a vrouter" in NO_DATAPATH
    assert "connected to nothing yet" in NO_DATAPATH


async def test_one_that_is_not_ready_says_why(
    contrailctl: Run, manager: str, agent: str, manager_process: ManagerProcess
) -> None:
    manager_process.reasons = ["the store is locked", "not listed yet"]
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert ended.status == 1
    assert row(ended, "manager") == [manager, "NotReady", "0.1.0", "the store is locked; not listed yet"]


async def test_a_manager_that_stands_by_is_ready_and_tells_who_leads(
    contrailctl: Run, agent: str, manager_process: ManagerProcess
) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"error": "this manager is on standby: the leader is other"}, status=503)

    pages = [route for route in manager_process.routes() if not route.path.startswith("/v1/")]
    async with served([*pages, web.get("/v1/{kind}", refuse)]) as standby:
        ended = await contrailctl("--manager", standby, "--agent", agent, "status")
    assert ended.status == 0
    assert row(ended, "manager") == [standby, "Ready", "0.1.0", "-"]
    said = f"{standby}/v1/pods: this manager is on standby: the leader is other (status 503)"
    assert f"objects: cannot be counted: {said}" in ended.out.splitlines()


async def test_one_that_is_away_is_told_and_the_other_still_asked(contrailctl: Run, nobody: str, agent: str) -> None:
    ended = await contrailctl("--manager", nobody, "--agent", agent, "status")
    assert ended.status == 1
    assert row(ended, "manager") == [nobody, "Unreachable", "unknown", "Connection refused"]
    assert row(ended, "agent")[1] == "Ready"
    assert "networks:" not in ended.out


async def test_a_version_that_is_not_told_is_unknown(
    contrailctl: Run, manager: str, agent: str, agent_process: AgentProcess
) -> None:
    agent_process.version = None
    ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert row(ended, "agent") == [agent, "Ready", "unknown", "-"]


async def test_a_process_without_such_a_page_too(contrailctl: Run, manager: str) -> None:
    async with served(AgentProcess().routes()[:1]) as agent:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert (ended.status, row(ended, "agent")) == (0, [agent, "Ready", "unknown", "-"])


async def test_a_stock_agent_has_no_such_pages(contrailctl: Run, manager: str) -> None:
    async with served([]) as stock:
        ended = await contrailctl("--manager", manager, "--agent", stock, "status")
    assert ended.status == 1
    assert row(ended, "agent")[1] == "NotReady"
    assert "/readyz: invalid response" in ended.out


async def test_a_manager_that_cannot_list_is_told(contrailctl: Run, agent: str) -> None:
    async def broken(_request: web.Request) -> web.Response:
        return web.json_response({"error": "disk full"}, status=500)

    routes = [*ManagerProcess().routes()[:2], web.get("/v1/{kind}", broken)]
    async with served(routes) as manager:
        ended = await contrailctl("--manager", manager, "--agent", agent, "status")
    assert f"objects: cannot be counted: {manager}/v1/pods: disk full (status 500)\n" in ended.out


@pytest.mark.parametrize("place", ["environment", "options"])
async def test_urls_come_from_the_environment_too(
    contrailctl: Run, manager: str, agent: str, nobody: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    named_there = place == "environment"
    monkeypatch.setenv("CONTRAIL_MANAGER", manager if named_there else nobody)
    monkeypatch.setenv("CONTRAIL_AGENT", agent if named_there else nobody)
    ended = await contrailctl("status", *([] if named_there else ["--manager", manager, "--agent", agent]))
    assert ended.status == 0


async def test_json_holds_it_all(contrailctl: Run, manager: str, agent: str) -> None:
    ended = await contrailctl("--manager", manager, "--agent", agent, "status", "-o", "json")
    document = json.loads(ended.out)
    assert [component["state"] for component in document["components"]] == ["Ready", "Ready"]
    assert document["counts"]["networks"] == "2"
    assert msgspec.json.decode(ended.out) == document
