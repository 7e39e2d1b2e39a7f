"""A demo that overlooks what DEL left would prove nothing: links, files and plugged ports are found and named."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from cni_contrail.runtime.sandbox import make_sandbox
from contrail_embedded.demo.leftovers import leftovers
from contrail_embedded.demo.place import DemoDirectory
from contrailctl.agent import AgentQueries
from contrailctl.fetch import Endpoint
from tests.support.fake_apis import AgentProcess, served
from tests.support.views import PODS

NOBODY = AgentQueries(Endpoint("http://127.0.0.1:1", 1), cluster="k8s")
"""An agent that is not asked where there are no pods."""


@pytest.fixture
def place() -> Iterator[DemoDirectory]:
    place = DemoDirectory(f"ct-demo-{uuid.uuid4().hex[:8]}")
    place.make()
    make_sandbox(place.node_namespace)
    yield place
    place.remove()


def test_nothing_is_told_of_what_is_clean(place: DemoDirectory) -> None:
    os.makedirs(place.attachment_records)
    assert list(leftovers(place, [], NOBODY)) == []


def test_a_link_is_named_with_its_namespace(place: DemoDirectory) -> None:
    pair = ["tapx", "type", "veth", "peer", "name", "tapy"]
    subprocess.run(["ip", "-n", place.node_namespace, "link", "add", *pair], check=True, timeout=10)
    assert sorted(leftovers(place, [], NOBODY)) == [
        f"link tapx is left in namespace {place.node_namespace}",
        f"link tapy is left in namespace {place.node_namespace}",
    ]


def test_files_of_plugin_and_runtime_are_named(place: DemoDirectory) -> None:
    paths = [f"{place.attachment_records}/c1/eth0.json", f"{place.result_cache}/results/net-c1-eth0"]
    for path in paths:
        os.makedirs(os.path.dirname(path))
        os.close(os.open(path, os.O_CREAT))
    assert list(leftovers(place, [], NOBODY)) == [f"file {path} is left" for path in paths]


async def test_ports_that_the_agent_still_has_are_named(place: DemoDirectory) -> None:
    async with served(AgentProcess().routes()) as url:
        agent = AgentQueries(Endpoint(url, 5), cluster="k8s")
        found = await asyncio.to_thread(lambda: list(leftovers(place, PODS, agent)))
    assert found == ["the agent still has 1 plugged ports of pod shop/router"]
