"""Concurrent calls: no failure, no mix-up, nothing left."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, Vmi, make_vmis

pytestmark = pytest.mark.machine

PODS = 50


def all_at_once(plugin: Plugin, calls: Sequence[tuple[Any, ...]], **config: Any) -> list[Outcome]:
    """Runs all calls concurrently."""
    document = json.dumps(plugin.config(**config))
    with ThreadPoolExecutor(len(calls)) as pool:
        outcomes = list(pool.map(lambda call: plugin.call(plugin.environment(*call), document), calls))
    return [outcome.succeeded() for outcome in outcomes]


def is_whole(netns: Netns, vmis: list[Vmi]) -> bool:
    shown = netns.ip("address")
    return all(vmi.mac in shown and all(each.address in shown for each in vmi.subnets) for vmi in vmis)


def test_a_hundred_adds_and_dels_over_fifty_pods(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    """As when a node comes back: each pod's new sandbox is attached while its old one is still being deleted."""
    plugin.settings |= {"poll-timeout": 3, "log-level": "info"}
    uids = [PodSandbox("").uid for _ in range(PODS)]
    vmis = [make_vmis(3, uid=uid, subnet=number) for number, uid in enumerate(uids)]

    def sandboxes() -> tuple[list[Netns], list[PodSandbox]]:
        made = [make_netns("pod") for _ in range(PODS)]
        return made, [PodSandbox(each.path, name=f"web-{n}", uid=uids[n]) for n, each in enumerate(made)]

    old_netns, old = sandboxes()
    for pod, of_pod in zip(old, vmis, strict=True):
        agent.serve(pod.vm_name, of_pod)
    all_at_once(plugin, [("ADD", pod) for pod in old])
    assert all(map(is_whole, old_netns, vmis))

    new_netns, new = sandboxes()
    all_at_once(
        plugin, [call for pair in zip(old, new, strict=True) for call in zip(("DEL", "ADD"), pair, strict=True)]
    )
    assert all(map(is_whole, new_netns, vmis))
    assert all(netns.links() == [] for netns in old_netns)
    assert len(plugin.node.links()) == 3 * PODS
    owners = {vmi.uuid: pod.container for pod, of_pod in zip(new, vmis, strict=True) for vmi in of_pod}
    assert agent.owners() == owners

    all_at_once(plugin, [("DEL", pod) for pod in new])
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_calls_for_one_container_are_serialized(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    """The specification forbids this to runtimes; each interface is still attached only once."""
    plugin.settings["poll-timeout"] = 3
    netns = make_netns("pod")
    pod = PodSandbox(netns.path)
    vmis = make_vmis(5, uid=pod.uid)
    same = [vmi.annotated(nad="demo/a", config_name="a") for vmi in vmis[1:]]
    agent.serve(pod.vm_name, [vmis[0], *same])
    outcomes = all_at_once(plugin, [("ADD", pod, f"x{number}") for number in range(4)], name="a")
    macs = {outcome.document["interfaces"][1]["mac"] for outcome in outcomes}
    assert macs == {vmi.mac for vmi in same}
