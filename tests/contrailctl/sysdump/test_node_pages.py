"""Pages of agent and daemon in a dump: what a running agent serves about itself, and what cannot be read."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_api.datapath.kind import Datapath
from contrail_config.embedded.store import SqliteStore
from tests.support.contrailctl_command import Run
from tests.support.served_agent import serve_agent


@pytest.fixture
async def agent_of_a_node(tmp_path: Path) -> AsyncIterator[str]:
    """URL of the agent of a node whose kernel connects the pods."""
    store = await SqliteStore.open(tmp_path / "store.db")
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        yield f"http://{served.address}"
    await store.close()


async def test_each_page_is_one_that_the_agent_serves(
    contrailctl: Run, agent_of_a_node: str, unreachable_url: str
) -> None:
    ended = await contrailctl("node-pages", "--agent", agent_of_a_node, "--daemon", unreachable_url, "--output", "json")
    assert ended.status == 0
    found = json.loads(ended.out)
    pages = found["pages"]
    assert set(pages) == {"agent-healthz", "agent-readyz", "agent-datapath-report", "agent-metrics"}
    assert json.loads(pages["agent-datapath-report"])["networks"] == {}
    assert "contrail_agent_" in pages["agent-metrics"]
    assert [name for name, text in pages.items() if text.startswith('{"error"')] == []
    (problem,) = found["problems"]
    assert problem.startswith(f"cnid/healthz: {unreachable_url}: ")
