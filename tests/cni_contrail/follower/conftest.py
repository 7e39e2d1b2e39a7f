"""An agent that serves the desired state of its node, and a folder for the namespaces of networks."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent_api.datapath.kind import Datapath
from contrail_config.embedded.store import SqliteStore
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, serve_agent


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[NodeNetworks]:
    networks = NodeNetworks(tmp_path / "networks")
    yield networks
    networks.close()


@pytest.fixture
async def served(store: SqliteStore, tmp_path: Path) -> AsyncIterator[ServedAgent]:
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        yield served
