"""`/adds`: the last ADDs of a pod with their phases and errors, bounded in number, for processes of the node only."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.recent_adds import RecentAdds
from cni_contrail.plugin import CommandOutput
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, ServePod

Adds = Callable[[PodSandbox], list[dict[str, Any]]]


@pytest.fixture
def adds(plugin: Plugin, caller: ShimAndDaemon) -> Adds:
    """Asks the daemon, which listens on all addresses, for the ADDs of a pod."""
    caller.configuration |= {"metrics-listen": "[::]:9099", **plugin.settings}

    def ask(pod: PodSandbox) -> list[dict[str, Any]]:
        with plugin.node.inside():
            return answer_of(f"http://127.0.0.1:9099/adds?namespace={pod.namespace}&pod={pod.name}")

    return ask


def answer_of(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        items: list[dict[str, Any]] = json.loads(answer.read())["items"]
    return items


def test_an_add_is_listed_with_its_phases(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, adds: Adds
) -> None:
    serve_pod(agent, 2)
    before = time.time()
    plugin.add(pod).succeeded()
    after = time.time()
    (add,) = adds(pod)
    assert (add["uid"], add["container"], add["ifname"]) == (pod.uid, pod.container, "eth0")
    assert (add["code"], add["message"]) == (0, "")
    assert before <= add["began"] <= add["began"] + add["seconds"] <= after + 0.001
    phases = add["phases"]
    assert [phase["name"] for phase in phases] == ["queue", "list", "make", "plug"]
    begins = [phase["after"] for phase in phases]
    assert begins == sorted(begins)
    assert all(phase["after"] + phase["seconds"] <= add["seconds"] for phase in phases)


def test_a_failed_add_is_listed_with_its_error(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, adds: Adds
) -> None:
    plugin.add(pod).failed(11)
    (add,) = adds(pod)
    assert add["code"] == 11
    assert pod.name in add["message"]


def test_other_pods_and_calls_are_not_listed(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, adds: Adds
) -> None:
    serve_pod(agent, 1)
    plugin.add(pod).succeeded()
    plugin.delete(pod).succeeded()
    assert len(adds(pod)) == 1
    assert adds(PodSandbox(pod.netns, name="other")) == []


def test_other_machines_are_refused(plugin: Plugin, adds: Adds, make_netns: Callable[[str], Netns]) -> None:
    other = make_netns("other")
    plugin.node.ip("link", "add", "uplink", "type", "veth", "peer", "name", "uplink", "netns", other.name)
    for side, address in ((plugin.node, "192.0.2.1/24"), (other, "192.0.2.2/24")):
        side.ip("address", "add", address, "dev", "uplink")
        side.ip("link", "set", "uplink", "up")
    adds_of_nobody = PodSandbox("", name="nobody")
    plugin.add(adds_of_nobody)  # starts the daemon
    url = "http://192.0.2.1:9099/adds?namespace=demo&pod=nobody"
    with other.inside(), pytest.raises(urllib.error.HTTPError, match="403") as refused:
        answer_of(url)
    refused.value.close()


def test_the_adds_of_all_pods_are_listed_without_a_name(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, adds: Adds
) -> None:
    serve_pod(agent, 1)
    plugin.add(pod).succeeded()
    plugin.add(PodSandbox(pod.netns, name="other"))
    adds(pod)
    with plugin.node.inside():
        assert [add["pod"] for add in answer_of("http://127.0.0.1:9099/adds")] == [pod.name, "other"]


@pytest.mark.parametrize("query", ["pod=web", "namespace=demo", "namespace=demo&pod=web&x=1"])
def test_other_query_keys_are_rejected(agent: ScriptedAgent, plugin: Plugin, adds: Adds, query: str) -> None:
    adds_of_nobody = PodSandbox("", name="nobody")
    plugin.add(adds_of_nobody)  # starts the daemon
    with plugin.node.inside(), pytest.raises(urllib.error.HTTPError, match="400") as rejected:
        answer_of(f"http://127.0.0.1:9099/adds?{query}")
    rejected.value.close()


def test_texts_that_are_not_unicode_can_be_served() -> None:
    adds = RecentAdds()
    environment = {"CNI_CONTAINERID": "c", "CNI_IFNAME": "eth0", "CNI_ARGS": "K8S_POD_NAME=a\udcff"}
    failed = CommandOutput(1, json.dumps({"code": 7, "msg": "invalid name \ud800"}), 7)
    adds.note(ShimRequest(environment, b"", 0), MeasuredCall("ADD"), failed)
    (add,) = adds.all()
    assert (add.pod, add.message) == ("a?", "invalid name ?")


def test_a_list_that_is_not_there_at_once_and_waited_for_is_one_phase() -> None:
    adds, call = RecentAdds(), MeasuredCall("ADD")
    parts = [("queue", 0.0, 0.25), ("list", 0.25, 0.25), ("list", 1.0, 2.0), ("make", 3.0, 0.5)]
    call.ended = [(name, call.began + after, seconds) for name, after, seconds in parts]
    adds.note(ShimRequest({"CNI_CONTAINERID": "c", "CNI_IFNAME": "eth0"}, b"", 0), call, CommandOutput(0, "{}"))
    (add,) = adds.all()
    found = [(phase.name, round(phase.after, 6), round(phase.seconds, 6)) for phase in add.phases]
    assert found == [("queue", 0.0, 0.25), ("list", 0.25, 2.25), ("make", 3.0, 0.5)]


def test_the_oldest_adds_are_dropped() -> None:
    adds = RecentAdds(limit=2)
    for number in range(3):
        environment = {
            "CNI_CONTAINERID": str(number),
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web",
        }
        adds.note(ShimRequest(environment, b"", 0), MeasuredCall("ADD"), CommandOutput(0, "{}"))
    assert [each.container for each in adds.of_pod("shop", "web")] == ["1", "2"]
