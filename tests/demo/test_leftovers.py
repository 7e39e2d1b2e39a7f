"""Links, files and plugged ports that DEL left are found; otherwise the demo would prove nothing."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from cni_contrail.datapath.uplink_rules import node_link
from cni_contrail.runtime.sandbox import make_sandbox
from contrailctl.agent import AgentApi
from contrailctl.endpoint import Endpoint
from demo.leftovers import leftovers
from demo.resources import DemoResources
from tests.support.api_views import PODS
from tests.support.fake_apis import FakeAgentApi, served

UNUSED_AGENT = AgentApi(Endpoint("http://127.0.0.1:1", 1), cluster="k8s")
"""Not queried as long as there are no pods."""


@pytest.fixture
def resources() -> Iterator[DemoResources]:
    resources = DemoResources(f"ct-{uuid.uuid4().hex[:8]}-demo")
    resources.create()
    make_sandbox(resources.node_namespace)
    yield resources
    resources.remove()


def test_a_clean_node_has_no_leftovers(resources: DemoResources) -> None:
    os.makedirs(resources.attachment_records)
    assert list(leftovers(resources, [], UNUSED_AGENT)) == []


def test_a_link_is_reported_with_its_namespace(resources: DemoResources) -> None:
    pair = ["tapx", "type", "veth", "peer", "name", "tapy"]
    subprocess.run(["ip", "-n", resources.node_namespace, "link", "add", *pair], check=True, timeout=10)
    assert sorted(leftovers(resources, [], UNUSED_AGENT)) == [
        f"link tapx in namespace {resources.node_namespace}: not removed",
        f"link tapy in namespace {resources.node_namespace}: not removed",
    ]


def test_the_uplink_of_a_network_stays_until_its_pods_are_deleted(resources: DemoResources) -> None:
    pair = [node_link(7), "type", "veth", "peer", "name", "tapx"]
    subprocess.run(["ip", "-n", resources.node_namespace, "link", "add", *pair], check=True, timeout=10)
    assert list(leftovers(resources, [], UNUSED_AGENT)) == [
        f"link tapx in namespace {resources.node_namespace}: not removed"
    ]


def test_files_of_plugin_and_runtime_are_reported(resources: DemoResources) -> None:
    paths = [f"{resources.attachment_records}/c1/eth0.json", f"{resources.result_cache}/results/net-c1-eth0"]
    for path in paths:
        os.makedirs(os.path.dirname(path))
        os.close(os.open(path, os.O_CREAT))
    assert list(leftovers(resources, [], UNUSED_AGENT)) == [f"file {path}: not removed" for path in paths]


async def test_ports_still_plugged_in_the_agent_are_reported(resources: DemoResources) -> None:
    async with served(FakeAgentApi().routes()) as url:
        agent = AgentApi(Endpoint(url, 5), cluster="k8s")
        found = await asyncio.to_thread(lambda: list(leftovers(resources, PODS, agent)))
    assert found == ["pod shop/router: 1 ports still plugged in the agent"]
