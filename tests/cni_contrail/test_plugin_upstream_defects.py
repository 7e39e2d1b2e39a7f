"""What the original plugin does wrong, one test each; most of them were seen on real clusters.

The number in a test's name is that of the defect in our list of them; its docstring says what the original does.
"""

import json
import os
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import by_entry_point
from tests.support.kernel_state import address_texts, routes
from tests.support.netns import Netns
from tests.support.plugin import COMMAND, PATIENT, Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import Reply, ScriptedAgent, Seen, Subnet, Vmi, make_vmis

DELEGATED = {"mode": "delegated"}
IPV6 = (Subnet("fd00:9::5", 64, "fd00:9::1", "fd00:9::2"),)


class Node:
    """All that a test needs, on a node with a stock agent: that is where the defects were."""

    def __init__(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> None:
        self.agent, self.plugin, self.pod, self.sandbox = agent, plugin, pod, sandbox

    def serve(self, count: int, change: Callable[[Vmi], Vmi] = lambda vmi: vmi) -> list[Vmi]:
        vmis = [change(vmi) for vmi in make_vmis(count, uid=self.pod.uid)]
        self.agent.serve(self.pod.machine_name, vmis)
        return vmis

    def nothing_is_left(self) -> bool:
        return (self.plugin.node.links(), self.sandbox.links(), self.plugin.files(), self.agent.ports) == (
            [],
            [],
            [],
            {},
        )


@pytest.fixture
def stock(stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> Node:
    return Node(stock_agent, plugin, pod, sandbox)


def test_01_ipv6_is_served_alone_and_beside_ipv4(stock: Node) -> None:
    """IPv4 only: an interface with IPv6 alone fails, of a dual-stack one IPv6 is dropped."""
    first, second = stock.serve(2)
    stock.agent.serve(stock.pod.machine_name, [first, replace(second, subnets=IPV6)])
    result = stock.plugin.add(stock.pod).succeeded().document
    assert [each["address"] for each in result["ips"]] == ["10.1.0.5/24", "fd00:1:1::5/64"]
    assert address_texts(stock.sandbox, "eth1") == ["fd00:9::5/64"]


def test_02_any_interface_can_carry_the_default_route(stock: Node) -> None:
    """The default route is for `eth0` alone, so that under Multus no secondary interface ever has it."""
    first, second = stock.serve(2)
    stock.agent.serve(stock.pod.machine_name, [first, second.annotated(default_gw="true")])
    stock.plugin.add(stock.pod, settings=DELEGATED).succeeded()
    stock.plugin.add(stock.pod, "net1", name="net-1").succeeded()
    assert "default via 10.1.1.1 dev net1" in stock.sandbox.ip("route")
    assert "default via fd00:1:2::1 dev net1" in stock.sandbox.ip("-6", "route")


def test_03_a_port_that_is_refused_is_the_error_and_at_once(stock: Node) -> None:
    """Errors of POST are ignored; the ADD fails after the whole waiting time with "404" of another question."""
    stock.serve(1)
    stock.agent.refuse("POST", text="Invalid VN uuid")
    begin = time.monotonic()
    message = stock.plugin.add(stock.pod, settings={"poll-timeout": 3, "poll-retries": 20}).failed(101)
    assert time.monotonic() - begin < 5
    assert "Invalid VN uuid" in message


def test_04_a_failed_add_leaves_nothing(stock: Node) -> None:
    """Taps, addresses, state files and ports of a failed ADD stay."""
    stock.serve(3)
    stock.agent.refuse("GET", "/vm/", status=500)
    stock.plugin.add(stock.pod).failed(101)
    assert stock.nothing_is_left()


def test_05_a_list_that_is_not_whole_is_waited_for(stock: Node) -> None:
    """An incomplete list uses up all retries within 10 ms."""
    vmis = stock.serve(3)
    stock.agent.serve(stock.pod.machine_name, vmis[:2])
    begin = time.monotonic()
    message = stock.plugin.add(stock.pod, settings={"poll-timeout": 0.1, "poll-retries": 4}).failed(11)
    assert time.monotonic() - begin >= 0.4
    assert "index 2 is missing" in message
    stock.agent.before(
        lambda seen: stock.agent.serve(stock.pod.machine_name, vmis) if len(stock.agent.seen) > 9 else None
    )
    stock.plugin.add(stock.pod, settings=PATIENT).succeeded()


def test_06_an_interface_without_annotations_yet_is_waited_for(stock: Node) -> None:
    """It is an immediate failure, though annotations come with a request of their own, a moment later."""
    vmis = stock.serve(2)
    stock.agent.serve(stock.pod.machine_name, [replace(vmi, annotations={}) for vmi in vmis])

    def annotate(seen: Seen) -> None:
        if len(stock.agent.seen) == 3:
            stock.agent.serve(stock.pod.machine_name, vmis)

    stock.agent.before(annotate)
    stock.plugin.add(stock.pod, settings=PATIENT).succeeded()
    assert stock.sandbox.links() == ["eth0", "eth1"]


def test_07_one_network_twice_is_two_interfaces(stock: Node) -> None:
    """Under Multus both attachments get the same MAC and address."""
    first, *others = stock.serve(3)
    same = [vmi.annotated(network="net-1", nad="demo/net-1") for vmi in others]
    stock.agent.serve(stock.pod.machine_name, [first, *same])
    results = [stock.plugin.add(stock.pod, ifname, name="net-1").succeeded().document for ifname in ("net1", "net2")]
    assert {result["interfaces"][1]["mac"] for result in results} == {vmi.mac for vmi in same}
    assert {result["ips"][0]["address"] for result in results} == {"10.1.1.5/24", "10.1.2.5/24"}


def test_08_del_of_one_attachment_takes_that_one_alone(stock: Node) -> None:
    """DEL of `net1` removes `eth0` and the device of `net2`, and leaves `net1`."""
    stock.serve(3)
    stock.plugin.add(stock.pod, settings=DELEGATED).succeeded()
    for number in (1, 2):
        stock.plugin.add(stock.pod, f"net{number}", name=f"net-{number}").succeeded()
    stock.plugin.delete(stock.pod, "net1", name="net-1").succeeded()
    assert stock.sandbox.links() == ["eth0", "net2"]
    assert len(stock.plugin.node.links()) == 2


@by_entry_point
@pytest.mark.parametrize("parent", ["multus", "multus-daemon", "kubelet"])
def test_09_who_starts_the_plugin_tells_nothing(
    stock: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parent: str
) -> None:
    """The parent process's name decides the mode: under `multus-daemon` each call makes all interfaces."""
    stock.serve(2)
    script = tmp_path / parent
    script.write_text('#!/bin/sh\n"$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr("tests.support.plugin_callers.COMMAND", [str(script), *COMMAND])

    def add(ifname: str, name: str) -> Outcome:
        config = json.dumps(stock.plugin.config(name=name, settings=DELEGATED))
        process = stock.plugin.start_with(stock.plugin.environment("ADD", stock.pod, ifname), config)
        stdout, stderr = process.communicate(timeout=20)
        return Outcome(process.returncode, stdout.decode(), stderr.decode())

    add("eth0", "contrail-k8s-cni").succeeded()
    assert stock.sandbox.links() == ["eth0"]
    add("net1", "net-1").succeeded()
    assert stock.sandbox.links() == ["eth0", "net1"]


def test_10_a_pod_of_the_same_name_gets_its_own_interfaces(stock: Node, make_netns: Callable[[str], Netns]) -> None:
    """An answer kept by a failed ADD is taken for the next pod of the name, whose uuids are others, for ever."""
    vmis = stock.serve(2)
    stock.agent.refuse("POST")
    stock.plugin.add(stock.pod, "net1", name="net-1").failed(101)
    stock.plugin.delete(stock.pod, "net1", name="net-1").succeeded()
    stock.agent.behave()
    again = PodSandbox(make_netns("pod").path, name=stock.pod.name)
    fresh = make_vmis(2, uid=again.uid, subnet=2)
    stock.agent.serve(again.machine_name, fresh)
    result = stock.plugin.add(again, "net1", name="net-1").succeeded().document
    assert result["interfaces"][1]["mac"] == fresh[1].mac != vmis[1].mac


class Test11NamesOfAnyLength:
    """Of a long interface name nothing of the pod is left in the tap's: the second pod on the node fails."""

    @pytest.mark.parametrize("name", ["eth0", "interface12", "fifteen-letters"])
    def test_pods_of_one_node_do_not_meet(self, stock: Node, make_netns: Callable[[str], Netns], name: str) -> None:
        pods = [stock.pod, *(PodSandbox(make_netns("pod").path, name=f"web-{n}") for n in (1, 2))]
        for number, pod in enumerate(pods):
            first, second = make_vmis(2, uid=pod.uid, subnet=number)
            stock.agent.serve(pod.machine_name, [first, second.annotated(interface="x" if name == "eth0" else name)])
            stock.plugin.add(pod).succeeded()
        links = stock.plugin.node.links()
        assert len(set(links)) == 6
        assert {len(link) for link in links} == {15}

    def test_a_name_that_is_too_long_is_an_error_at_once(self, stock: Node) -> None:
        first, second = stock.serve(2)
        stock.agent.serve(stock.pod.machine_name, [first, second.annotated(interface="sixteen-letters-")])
        begin = time.monotonic()
        message = stock.plugin.add(stock.pod, settings={"poll-timeout": 3}).failed(103)
        assert time.monotonic() - begin < 3
        assert "sixteen-letters-" in message
        assert "too long" in message
        assert stock.nothing_is_left()


@pytest.mark.parametrize(("name", "rival"), [("eth0", 0), ("eth2", 2)])
def test_12_two_interfaces_that_want_one_name_are_an_error_that_names_both(stock: Node, name: str, rival: int) -> None:
    """It is not noticed, and the ADD fails after the whole waiting time."""
    vmis = stock.serve(3)
    vmis[1] = vmis[1].annotated(interface=name)
    stock.agent.serve(stock.pod.machine_name, vmis)
    message = stock.plugin.add(stock.pod).failed(103)
    assert name in message
    assert vmis[1].uuid in message
    assert vmis[rival].uuid in message
    assert stock.nothing_is_left()


class Test13AddAgain:
    """A second ADD on the same sandbox fails with "file exists", one on a new sandbox with "link not found"."""

    def test_on_the_same_sandbox_after_one_that_was_killed(self, stock: Node) -> None:
        stock.serve(2)
        came = stock.agent.stall("POST")
        killed = stock.plugin.start_with(stock.plugin.environment("ADD", stock.pod), json.dumps(stock.plugin.config()))
        assert came.wait(10)
        stock.plugin.kill(killed)
        killed.communicate(timeout=10)
        stock.agent.behave()
        assert len(stock.plugin.node.links()) == 2
        stock.plugin.add(stock.pod).succeeded()
        assert stock.sandbox.links() == ["eth0", "eth1"]

    def test_on_a_new_sandbox_while_the_old_one_is_not_deleted(
        self, stock: Node, make_netns: Callable[[str], Netns]
    ) -> None:
        stock.serve(2)
        stock.plugin.add(stock.pod).succeeded()
        netns = make_netns("pod")
        stock.plugin.add(PodSandbox(netns.path, name=stock.pod.name, uid=stock.pod.uid)).succeeded()
        stock.plugin.delete(stock.pod).succeeded()
        assert netns.links() == ["eth0", "eth1"]
        assert len(stock.plugin.node.links()) == 2


class Test14AllCommandsAndVersions:
    """No CHECK, STATUS, GC; configurations of 0.4.0 and later are refused; all other errors are code 100."""

    @pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
    def test_every_version_is_served(self, stock: Node, version: str) -> None:
        stock.serve(1)
        result = stock.plugin.add(stock.pod, version=version).succeeded().document
        assert result["cniVersion"] == version
        if version >= "0.4.0":
            stock.plugin.check(stock.pod, previous=result, version=version).succeeded()
        if version >= "1.1.0":
            stock.plugin.status().succeeded()
            stock.plugin.gc([stock.pod]).succeeded()
        stock.plugin.delete(stock.pod, version=version).succeeded()
        assert stock.nothing_is_left()

    def test_errors_have_codes_of_their_own(self, stock: Node) -> None:
        stock.serve(1)
        stock.plugin.add(stock.pod, version="9.9.9").failed(1)
        stock.plugin.add(stock.pod, ipam={"type": "x"}).failed(2)
        stock.plugin.add(PodSandbox("/run/netns/not-there")).failed(4)
        stock.plugin.call(stock.plugin.environment("ADD", stock.pod), "{").failed(6)
        stock.plugin.add(stock.pod, "net1", name="unknown").failed(7)
        stock.plugin.add(PodSandbox(stock.pod.netns, name="unknown")).failed(11)
        stock.plugin.add(stock.pod).succeeded()
        stock.plugin.add(stock.pod).failed(102)


class Test15Annotations:
    """A colon cuts a value off, a quote fails all tries, an entry without colon ends the plugin with a trace."""

    @pytest.mark.parametrize("value", ["a:b:c", 'say "x"', "{}", "a}b", "", "ä", "\\"])
    def test_a_value_may_be_anything(self, stock: Node, value: str) -> None:
        stock.serve(1, lambda vmi: vmi.annotated(note=value))
        stock.plugin.add(stock.pod).succeeded()

    def test_an_entry_without_colon_is_named(self, stock: Node) -> None:
        stock.serve(1)

        def without_colon(seen: Seen) -> Reply | None:
            reply = stock.agent.usual(seen)
            reply.document[0]["annotations"].append("{index}")
            return reply

        stock.agent.before(without_colon)
        outcome = stock.plugin.add(stock.pod)
        assert "annotations must be a list of strings {key:value}" in outcome.failed(100)
        assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("version", ["0.2.0", "0.3.1", "1.0.0"])
def test_16_a_network_that_the_pod_is_not_in_is_an_error_at_once(stock: Node, version: str) -> None:
    """It is polled for until the time is over; or `null` is printed with status 0, or the plugin ends with a trace."""
    stock.serve(2)
    begin = time.monotonic()
    message = stock.plugin.add(stock.pod, "net1", name="elsewhere", version=version).failed(7)
    assert time.monotonic() - begin < 0.45
    assert "the pod has no interface in network elsewhere" in message
    assert "demo/net-1" in message
    assert stock.nothing_is_left()


class Test17State:
    """Calls do not lock each other out; files are written in place; directories lack the x bit, and all may read."""

    def test_calls_for_one_container_take_turns(self, stock: Node) -> None:
        vmis = stock.serve(4)
        same = [vmi.annotated(network="a", nad="demo/a") for vmi in vmis[1:]]
        stock.agent.serve(stock.pod.machine_name, [vmis[0], *same])
        with ThreadPoolExecutor(3) as pool:
            outcomes = pool.map(lambda number: stock.plugin.add(stock.pod, f"x{number}", name="a"), range(3))
        macs = {outcome.succeeded().document["interfaces"][1]["mac"] for outcome in outcomes}
        assert macs == {vmi.mac for vmi in same}

    def test_files_and_directories_are_for_root_alone(self, stock: Node) -> None:
        stock.serve(1)
        stock.plugin.add(stock.pod).succeeded()
        for root in (stock.plugin.state_dir, stock.plugin.config_dir):
            for path in (root, *root.rglob("*")):
                assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


class Test18Http:
    """No time-outs: an agent that hangs holds the call for ever. Addresses are IPv4 alone."""

    def test_an_agent_that_hangs_is_given_up(self, stock: Node) -> None:
        stock.agent.stall("GET")
        begin = time.monotonic()
        stock.plugin.add(stock.pod).failed(11)
        assert time.monotonic() - begin < 5

    @pytest.mark.parametrize(
        ("host", "shown"), [("::1", "[::1]:1"), ("127.0.0.1", "127.0.0.1:1"), ("localhost", "localhost:1")]
    )
    def test_it_may_be_anywhere(self, stock: Node, host: str, shown: str) -> None:
        settings = {"agent-socket": "", "vrouter-ip": host, "vrouter-port": 1, "poll-timeout": 0.01}
        assert f"http://{shown}: Connection refused" in stock.plugin.add(stock.pod, settings=settings).failed(11)


def test_19_the_configuration_on_standard_input_is_enough(stock: Node) -> None:
    """Without a file of its own ADD and DEL fail, and sandboxes cannot be removed."""
    stock.serve(1)
    assert not stock.plugin.node_file.exists()
    stock.plugin.add(stock.pod).succeeded()
    stock.plugin.delete(stock.pod).succeeded()
    assert stock.nothing_is_left()


def test_20_the_result_says_sandbox_host_end_whose_each_address_is_and_its_version(stock: Node) -> None:
    """All of them are missing."""
    stock.serve(1)
    result = stock.plugin.add(stock.pod, version="0.3.1").succeeded().document
    assert result["cniVersion"] == "0.3.1"
    host_end, sandbox_end = result["interfaces"]
    assert host_end["name"] == stock.plugin.node.links()[0]
    assert (sandbox_end["name"], sandbox_end["sandbox"]) == ("eth0", stock.pod.netns)
    assert [each["interface"] for each in result["ips"]] == [1, 1]


def test_21_interfaces_are_made_in_the_order_of_their_indexes(stock: Node) -> None:
    """They are made in the order of their uuids."""
    vmis = sorted(make_vmis(4, uid=stock.pod.uid), key=lambda vmi: vmi.uuid, reverse=True)
    ordered = [vmi.annotated(index=f"{position}/4") for position, vmi in enumerate(vmis)]
    stock.agent.serve(stock.pod.machine_name, ordered)
    stock.plugin.add(stock.pod).succeeded()
    assert stock.sandbox.links() == ["eth0", "eth1", "eth2", "eth3"]
    assert [vmi.mac in stock.sandbox.ip("link", "show", f"eth{n}") for n, vmi in enumerate(ordered)] == [True] * 4


def test_22_of_two_interfaces_in_one_subnet_the_first_is_preferred(stock: Node) -> None:
    """Both have the same route to it, without a metric; the host ends keep the kernel's settings."""
    subnets = [(Subnet(f"10.1.0.{n}", 24, "10.1.0.1"), Subnet(f"fd00::{n}", 64, "fd00::1")) for n in (5, 6, 7)]
    vmis = [replace(vmi, subnets=of_vmi) for vmi, of_vmi in zip(stock.serve(3), subnets, strict=True)]
    stock.agent.serve(stock.pod.machine_name, vmis)
    stock.plugin.add(stock.pod).succeeded()
    ipv4 = [(each["dev"], each.get("metric")) for each in routes(stock.sandbox, version=4, protocol="kernel")]
    assert ipv4 == [("eth0", None), ("eth1", 1), ("eth2", 2)]
    ipv6 = routes(stock.sandbox, version=6, protocol="kernel")
    assert [(each["dev"], each["metric"]) for each in ipv6 if each["dst"] == "fd00::/64"] == [
        ("eth0", 256),
        ("eth1", 257),
        ("eth2", 258),
    ]
    for link in stock.plugin.node.links():
        path = f"/proc/sys/net/ipv6/conf/{link}/accept_ra"
        assert stock.plugin.node.run("cat", path).stdout.strip() == "0"


@pytest.mark.parametrize("annotations", [{}, {"kind": "Pod"}, {"network": "default", "note": "x"}])
def test_23_an_interface_is_never_taken_before_it_is_annotated_and_nothing_crashes(
    stock: Node, annotations: dict[str, str]
) -> None:
    """On production clusters the race of number 6 was a core dump, then a failure at once."""
    stock.serve(2, lambda vmi: replace(vmi, annotations=annotations))
    outcome = stock.plugin.add(stock.pod)
    assert "has no index yet" in outcome.failed(11)
    assert "Traceback" not in outcome.stderr
    assert stock.nothing_is_left()


def test_24_the_directory_of_port_files_is_made_with_those_above_it(stock: Node) -> None:
    """Without its parent no file is written, no port is told, and the ADD fails after the whole waiting time."""
    vmis = stock.serve(2)
    nowhere = stock.plugin.folder / "not" / "there" / "yet"
    stock.plugin.config_dir = nowhere
    stock.plugin.settings["config-dir"] = str(nowhere)
    stock.plugin.add(stock.pod).succeeded()
    assert sorted(os.listdir(nowhere / stock.pod.machine_name)) == sorted(vmi.uuid for vmi in vmis)
    stock.plugin.delete(stock.pod).succeeded()
    assert os.listdir(nowhere) == []
