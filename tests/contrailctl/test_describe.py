"""`contrailctl describe pod`: the details of one pod."""

import argparse
import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from contrail_config.objects import Event
from contrail_config.port_readings import PortCounters, PortDrops
from contrailctl.describe import describe_pod
from contrailctl.errors import ContrailctlError, NotFoundError, ResponseError
from contrailctl.manager import ManagerApi
from manager.api.types import PodView, PortView
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


async def test_a_manager_adds_the_ports_that_it_knows() -> None:
    pod = api_views.PODS[1]
    assert pod.machine is not None
    uuids = [interface.uuid for interface in pod.machine.interfaces]
    common: dict[str, Any] = {"namespace": "shop", "pod": "router", "counted_at": "2026-11-21T12:00:05Z"}
    of_network = PortDrops(spoofing=2, network_spoofing=3, network_broadcast=4, network_mtu=5)
    found = [
        PortView(
            index=0, name="eth0", interface=uuids[0], condition="Problem", reason="no route", link="tap0", **common
        ),
        PortView(
            index=1,
            name="eth1",
            interface=uuids[1],
            condition="Connected",
            link="tap1",
            link_namespace="contrail-5",
            counters=PortCounters(12, 3456, 1, 60),
            drops=of_network,
            **common,
        ),
        PortView(index=2, name="eth2", interface=uuids[2], condition="Later", **common),
    ]
    output = describe_pod(cast(ManagerApi, _OnePod(pod, found)), argparse.Namespace(pod="shop/router"))
    first, second, third = ("\n    Host Interface:" + part for part in output.text.split("\n    Host Interface:")[1:])
    assert first.startswith(
        "\n    Host Interface:  tap0\n    Host Namespace:  the node's own\n    Port:            Problem: no route\n"
    )
    assert second.split("\n  ")[1:9] == [
        "  Host Interface:  tap1",
        "  Host Namespace:  contrail-5",
        "  Port:            Connected",
        "  Sent:            12 packets, 3456 bytes",
        "  Received:        1 packets, 60 bytes",
        "  Counted:         2026-11-21T12:00:05Z",
        "  Port Drops:      2 spoofing",
        "  Network Drops:   3 spoofing, 4 broadcast, 5 MTU",
    ]
    assert third.startswith("\n    Host Interface:  <not plugged>\n")
    assert "    Port:            Unknown: Later\n" in third
    assert output.document["plugged"] == {uuids[0]: "tap0", uuids[1]: "tap1"}


async def test_an_agent_that_does_not_answer_a_manager_is_named_and_the_rest_is_shown() -> None:
    silent = ResponseError("http://manager/v1/ports: node n: its agent did not answer (status 504)")
    pod = api_views.PODS[1]
    text = describe_pod(cast(ManagerApi, _OnePod(pod, silent)), argparse.Namespace(pod="shop/router")).text
    assert f"\nPorts:           {silent}\n" in text
    assert "Host Interface" not in text


NO_PORTS = NotFoundError("/v1/ports: not found")


class _OnePod:
    """A manager with one pod and no events; `ports` are those that it knows, or why it does not."""

    def __init__(self, pod: PodView, ports: list[PortView] | ContrailctlError = NO_PORTS) -> None:
        self._pod = pod
        self._ports = ports

    def ports(self, _namespace: str, _name: str) -> list[PortView]:
        if isinstance(self._ports, ContrailctlError):
            raise self._ports
        return self._ports

    def pod(self, _namespace: str, _name: str) -> PodView:
        return self._pod

    def events(self, **_of: str) -> list[Event]:
        return []
