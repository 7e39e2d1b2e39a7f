"""`contrailctl describe pod`: the details of one pod."""

import argparse
import json
from pathlib import Path
from typing import cast

import msgspec
import pytest

from contrail_config.objects import Event
from contrailctl.describe import describe_pod
from contrailctl.manager import ManagerApi
from manager.api.types import PodView
from tests.support import api_views
from tests.support.contrailctl_command import Run

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("pod", "page"),
    [("shop/router", "describe-router"), ("shop/waiting", "describe-waiting"), ("kube-system/proxy", "describe-proxy")],
)
async def test_state_interfaces_routes_and_events_are_shown(
    contrailctl: Run, manager: str, pod: str, page: str
) -> None:
    ended = await contrailctl("--manager", manager, "describe", "pod", pod)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (GOLDEN / f"{page}.txt").read_text()


async def test_an_agent_adds_the_host_interfaces(contrailctl: Run, agent: str) -> None:
    ended = await contrailctl("--agent", agent, "describe", "pod", "shop/router")
    assert ended.out == (GOLDEN / "describe-router-of-agent.txt").read_text()


async def test_an_agent_beside_the_manager_adds_the_ports_of_its_pods(
    contrailctl: Run, manager: str, agent: str
) -> None:
    both = "--manager", manager, "--agent", agent, "describe", "pod"
    text = (await contrailctl(*both, "shop/router")).out
    assert "    Host Interface:  tapabcdefghijkl\n" in text
    assert text.endswith("Events:          <none>\n")
    document = json.loads((await contrailctl(*both, "shop/router", "-o", "json")).out)
    assert list(document["plugged"].values()) == ["tapabcdefghijkl"]
    assert (await contrailctl(*both, "shop/waiting")).out == (GOLDEN / "describe-waiting.txt").read_text()


async def test_json_has_the_pod_and_its_events(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "describe", "pod", "shop/waiting", "-o", "json")
    document = json.loads(ended.out)
    assert msgspec.convert(document["pod"], PodView) == api_views.PODS[2]
    assert [event["reason"] for event in document["events"]] == ["NetworkMissing"]


async def test_events_of_a_network_with_the_same_name_are_omitted(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "describe", "pod", "shop/router")
    assert "NetworkCreated" not in ended.out


async def test_a_missing_pod_is_a_failure(contrailctl: Run, manager: str) -> None:
    ended = await contrailctl("--manager", manager, "describe", "pod", "shop/web")
    assert (ended.status, ended.err) == (1, f"contrailctl: pod shop/web not found at {manager}\n")


@pytest.mark.parametrize("name", ["router", "/router", "shop/", "a/b/c"])
async def test_a_pod_needs_namespace_and_name(contrailctl: Run, unreachable_url: str, name: str) -> None:
    ended = await contrailctl("--manager", unreachable_url, "describe", "pod", name)
    assert (ended.status, ended.err) == (2, f"contrailctl: '{name}': must be NAMESPACE/NAME\n")


async def test_interfaces_have_the_names_that_the_manager_reports() -> None:
    pod = msgspec.structs.replace(api_views.PODS[1], names=("eth0", "web", "net2"))
    arguments = argparse.Namespace(pod="shop/router")
    text = describe_pod(cast(ManagerApi, _OnePod(pod)), arguments).text
    assert [name for name in ("eth0", "web", "eth2", "net2") if f"\n  {name}:" in text] == ["eth0", "web", "net2"]


class _OnePod:
    """A manager with one pod and no events."""

    def __init__(self, pod: PodView) -> None:
        self._pod = pod

    def pod(self, _namespace: str, _name: str) -> PodView:
        return self._pod

    def events(self, **_of: str) -> list[Event]:
        return []
