"""Many calls at once: no failure, nothing mixed up, nothing left."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.support.agents import ScriptedAgent, make_vmis
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox

PODS = 20


def test_twenty_pods_of_three_interfaces_come_and_go_together(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    plugin.settings |= {"poll-timeout": 3, "log-level": "info"}
    sandboxes = [make_netns("pod") for _ in range(PODS)]
    pods = [PodSandbox(netns.path, name=f"web-{number}") for number, netns in enumerate(sandboxes)]
    served = {}
    for number, pod in enumerate(pods):
        served[pod.container] = make_vmis(3, uid=pod.uid, subnet=number)
        agent.serve(pod.machine_name, served[pod.container])

    def all_at_once(command: str) -> list[str]:
        processes = [plugin.start(plugin.environment(command, pod)) for pod in pods]
        with ThreadPoolExecutor(PODS) as pool:
            config = json.dumps(plugin.config()).encode()
            outputs = pool.map(lambda process: process.communicate(config, timeout=50), processes)
            said = [stdout.decode() + stderr.decode() for stdout, stderr in outputs]
        assert [process.returncode for process in processes] == [0] * PODS, said
        return said

    all_at_once("ADD")
    for pod, netns in zip(pods, sandboxes, strict=True):
        assert netns.links() == ["eth0", "eth1", "eth2"]
        for name, vmi in zip(netns.links(), served[pod.container], strict=True):
            shown = netns.ip("address", "show", "dev", name)
            assert vmi.mac in shown
            assert all(each.address in shown for each in vmi.subnets)
    assert len(plugin.node.links()) == 3 * PODS
    assert agent.owners() == {vmi.uuid: container for container, vmis in served.items() for vmi in vmis}

    all_at_once("DEL")
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})
    assert all(netns.links() == [] for netns in sandboxes)


def test_calls_for_one_container_take_turns(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    """The specification forbids a runtime to do it; whoever does gets each interface once."""
    plugin.settings["poll-timeout"] = 3
    netns = make_netns("pod")
    pod = PodSandbox(netns.path)
    vmis = make_vmis(5, uid=pod.uid)
    same = [vmi.annotated(nad="demo/a", config_name="a") for vmi in vmis[1:]]
    agent.serve(pod.machine_name, [vmis[0], *same])
    config = json.dumps(plugin.config(name="a")).encode()
    processes = [plugin.start(plugin.environment("ADD", pod, f"x{number}")) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda process: process.communicate(config, timeout=50), processes))
    assert [process.returncode for process in processes] == [0] * 4, outputs
    macs = {json.loads(stdout)["interfaces"][1]["mac"] for stdout, _ in outputs}
    assert macs == {vmi.mac for vmi in same}
