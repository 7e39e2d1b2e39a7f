"""Defects of the upstream plugin, one test each; most of them were seen on real clusters.

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
from tests.support.plugin import COMMAND, LONG_POLL, Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, Subnet, Vmi, make_vmis

DELEGATED = {"mode": "delegated"}
IPV6 = (Subnet("fd00:9::5", 64, "fd00:9::1", "fd00:9::2"),)


class Host:
    """Everything that a test needs, on a node with a Contrail vrouter agent, where the defects occur."""

    def __init__(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> None:
        self.agent, self.plugin, self.pod, self.sandbox = agent, plugin, pod, sandbox

    def serve(self, count: int, change: Callable[[Vmi], Vmi] = lambda vmi: vmi) -> list[Vmi]:
        vmis = [change(vmi) for vmi in make_vmis(count, uid=self.pod.uid)]
        self.agent.serve(self.pod.vm_name, vmis)
        return vmis

    def is_clean(self) -> bool:
        left = (self.plugin.node.links(), self.sandbox.links(), self.plugin.files(), self.agent.ports)
        return left == ([], [], [], {})


@pytest.fixture
def host(vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> Host:
    return Host(vrouter_agent, plugin, pod, sandbox)


def test_01_ipv6_is_served_alone_and_beside_ipv4(host: Host) -> None:
    """IPv4 only: an interface with IPv6 alone fails, of a dual-stack one IPv6 is dropped."""
    first, second = host.serve(2)
    host.agent.serve(host.pod.vm_name, [first, replace(second, subnets=IPV6)])
    result = host.plugin.add(host.pod).succeeded().document
    assert [each["address"] for each in result["ips"]] == ["10.1.0.5/24", "fd00:1:1::5/64"]
    assert address_texts(host.sandbox, "eth1") == ["fd00:9::5/64"]


def test_02_any_interface_can_carry_the_default_route(host: Host) -> None:
    """The default route is for `eth0` alone, so that under Multus no secondary interface ever has it."""
    first, second = host.serve(2)
    host.agent.serve(host.pod.vm_name, [first, second.annotated(default_gw="true")])
    host.plugin.add(host.pod, settings=DELEGATED).succeeded()
    host.plugin.add(host.pod, "net1", name="net-1").succeeded()
    assert "default via 10.1.1.1 dev net1" in host.sandbox.ip("route")
    assert "default via fd00:1:2::1 dev net1" in host.sandbox.ip("-6", "route")


def test_03_a_rejected_port_fails_the_add_at_once(host: Host) -> None:
    """Errors of POST are ignored; the ADD fails after the whole timeout with the "404" of another request."""
    host.serve(1)
    host.agent.reject("POST", text="Invalid VN uuid")
    begin = time.monotonic()
    message = host.plugin.add(host.pod, settings={"poll-timeout": 3, "poll-retries": 20}).failed(101)
    assert time.monotonic() - begin < 5
    assert "Invalid VN uuid" in message


def test_04_a_failed_add_leaves_nothing(host: Host) -> None:
    """Taps, addresses, state files and ports of a failed ADD are left behind."""
    host.serve(3)
    host.agent.reject("GET", "/vm/", status=500)
    host.plugin.add(host.pod).failed(101)
    assert host.is_clean()


def test_05_an_incomplete_list_is_awaited(host: Host) -> None:
    """An incomplete list uses up all retries within 10 ms."""
    vmis = host.serve(3)
    host.agent.serve(host.pod.vm_name, vmis[:2])
    begin = time.monotonic()
    message = host.plugin.add(host.pod, settings={"poll-timeout": 0.1, "poll-retries": 4}).failed(11)
    assert time.monotonic() - begin >= 0.4
    assert "index 2 is missing" in message
    host.agent.before(lambda seen: host.agent.serve(host.pod.vm_name, vmis) if len(host.agent.requests) > 9 else None)
    host.plugin.add(host.pod, settings=LONG_POLL).succeeded()


def test_06_an_interface_not_annotated_yet_is_awaited(host: Host) -> None:
    """It is an immediate failure, though annotations are set by a separate request a moment later."""
    vmis = host.serve(2)
    host.agent.serve(host.pod.vm_name, [replace(vmi, annotations={}) for vmi in vmis])

    def annotate(seen: ReceivedRequest) -> None:
        if len(host.agent.requests) == 3:
            host.agent.serve(host.pod.vm_name, vmis)

    host.agent.before(annotate)
    host.plugin.add(host.pod, settings=LONG_POLL).succeeded()
    assert host.sandbox.links() == ["eth0", "eth1"]


def test_07_one_network_twice_is_two_interfaces(host: Host) -> None:
    """Under Multus both attachments get the same MAC and address."""
    first, *others = host.serve(3)
    same = [vmi.annotated(network="net-1", nad="demo/net-1") for vmi in others]
    host.agent.serve(host.pod.vm_name, [first, *same])
    results = [host.plugin.add(host.pod, ifname, name="net-1").succeeded().document for ifname in ("net1", "net2")]
    assert {result["interfaces"][1]["mac"] for result in results} == {vmi.mac for vmi in same}
    assert {result["ips"][0]["address"] for result in results} == {"10.1.1.5/24", "10.1.2.5/24"}


def test_08_del_removes_only_its_own_attachment(host: Host) -> None:
    """DEL of `net1` removes `eth0` and the device of `net2`, and leaves `net1`."""
    host.serve(3)
    host.plugin.add(host.pod, settings=DELEGATED).succeeded()
    for number in (1, 2):
        host.plugin.add(host.pod, f"net{number}", name=f"net-{number}").succeeded()
    host.plugin.delete(host.pod, "net1", name="net-1").succeeded()
    assert host.sandbox.links() == ["eth0", "net2"]
    assert len(host.plugin.node.links()) == 2


@by_entry_point
@pytest.mark.parametrize("parent", ["multus", "multus-daemon", "kubelet"])
def test_09_the_parent_process_does_not_matter(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parent: str
) -> None:
    """The parent process's name decides the mode: under `multus-daemon` each call makes all interfaces."""
    host.serve(2)
    script = tmp_path / parent
    script.write_text('#!/bin/sh\n"$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr("tests.support.plugin_callers.COMMAND", [str(script), *COMMAND])

    def add(ifname: str, name: str) -> Outcome:
        config = json.dumps(host.plugin.config(name=name, settings=DELEGATED))
        process = host.plugin.start_with(host.plugin.environment("ADD", host.pod, ifname), config)
        stdout, stderr = process.communicate(timeout=20)
        return Outcome(process.returncode, stdout.decode(), stderr.decode())

    add("eth0", "contrail-k8s-cni").succeeded()
    assert host.sandbox.links() == ["eth0"]
    add("net1", "net-1").succeeded()
    assert host.sandbox.links() == ["eth0", "net1"]


def test_10_a_pod_of_the_same_name_gets_its_own_interfaces(host: Host, make_netns: Callable[[str], Netns]) -> None:
    """The list cached by a failed ADD is used for every later pod of the name, which has other uuids."""
    vmis = host.serve(2)
    host.agent.reject("POST")
    host.plugin.add(host.pod, "net1", name="net-1").failed(101)
    host.plugin.delete(host.pod, "net1", name="net-1").succeeded()
    host.agent.clear_behaviours()
    again = PodSandbox(make_netns("pod").path, name=host.pod.name)
    fresh = make_vmis(2, uid=again.uid, subnet=2)
    host.agent.serve(again.vm_name, fresh)
    result = host.plugin.add(again, "net1", name="net-1").succeeded().document
    assert result["interfaces"][1]["mac"] == fresh[1].mac != vmis[1].mac


class Test11NamesOfAnyLength:
    """The tap of a long interface name contains nothing of the pod: the second pod on the node fails."""

    @pytest.mark.parametrize("name", ["eth0", "interface12", "fifteen-letters"])
    def test_host_names_of_pods_do_not_conflict(
        self, host: Host, make_netns: Callable[[str], Netns], name: str
    ) -> None:
        pods = [host.pod, *(PodSandbox(make_netns("pod").path, name=f"web-{n}") for n in (1, 2))]
        for number, pod in enumerate(pods):
            first, second = make_vmis(2, uid=pod.uid, subnet=number)
            host.agent.serve(pod.vm_name, [first, second.annotated(interface="x" if name == "eth0" else name)])
            host.plugin.add(pod).succeeded()
        links = host.plugin.node.links()
        assert len(set(links)) == 6
        assert {len(link) for link in links} == {15}

    def test_an_overlong_interface_name_is_an_error_at_once(self, host: Host) -> None:
        first, second = host.serve(2)
        host.agent.serve(host.pod.vm_name, [first, second.annotated(interface="sixteen-letters-")])
        begin = time.monotonic()
        message = host.plugin.add(host.pod, settings={"poll-timeout": 3}).failed(103)
        assert time.monotonic() - begin < 3
        assert "sixteen-letters-" in message
        assert "too long" in message
        assert host.is_clean()


@pytest.mark.parametrize(("name", "rival"), [("eth0", 0), ("eth2", 2)])
def test_12_a_name_conflict_of_two_interfaces_is_an_error_that_names_both(host: Host, name: str, rival: int) -> None:
    """It is not detected, and the ADD fails after the whole timeout."""
    vmis = host.serve(3)
    vmis[1] = vmis[1].annotated(interface=name)
    host.agent.serve(host.pod.vm_name, vmis)
    message = host.plugin.add(host.pod).failed(103)
    assert name in message
    assert vmis[1].uuid in message
    assert vmis[rival].uuid in message
    assert host.is_clean()


class Test13AddAgain:
    """A second ADD on the same sandbox fails with "file exists", one on a new sandbox with "link not found"."""

    def test_on_the_same_sandbox_after_a_killed_add(self, host: Host) -> None:
        host.serve(2)
        came = host.agent.stall("POST")
        killed = host.plugin.start_with(host.plugin.environment("ADD", host.pod), json.dumps(host.plugin.config()))
        assert came.wait(10)
        host.plugin.kill(killed)
        killed.communicate(timeout=10)
        host.agent.clear_behaviours()
        assert len(host.plugin.node.links()) == 2
        host.plugin.add(host.pod).succeeded()
        assert host.sandbox.links() == ["eth0", "eth1"]

    def test_on_a_new_sandbox_before_del_of_the_old_one(self, host: Host, make_netns: Callable[[str], Netns]) -> None:
        host.serve(2)
        host.plugin.add(host.pod).succeeded()
        netns = make_netns("pod")
        host.plugin.add(PodSandbox(netns.path, name=host.pod.name, uid=host.pod.uid)).succeeded()
        host.plugin.delete(host.pod).succeeded()
        assert netns.links() == ["eth0", "eth1"]
        assert len(host.plugin.node.links()) == 2


class Test14AllCommandsAndVersions:
    """No CHECK, STATUS, GC; configurations of 0.4.0 and later are refused; all other errors are code 100."""

    @pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
    def test_every_version_is_served(self, host: Host, version: str) -> None:
        host.serve(1)
        result = host.plugin.add(host.pod, version=version).succeeded().document
        assert result["cniVersion"] == version
        if version >= "0.4.0":
            host.plugin.check(host.pod, previous=result, version=version).succeeded()
        if version >= "1.1.0":
            host.plugin.status().succeeded()
            host.plugin.gc([host.pod]).succeeded()
        host.plugin.delete(host.pod, version=version).succeeded()
        assert host.is_clean()

    def test_errors_have_distinct_codes(self, host: Host) -> None:
        host.serve(1)
        host.plugin.add(host.pod, version="9.9.9").failed(1)
        host.plugin.add(host.pod, ipam={"type": "x"}).failed(2)
        host.plugin.add(PodSandbox("/run/netns/not-there")).failed(4)
        host.plugin.call(host.plugin.environment("ADD", host.pod), "{").failed(6)
        host.plugin.add(host.pod, "net1", name="unknown").failed(7)
        host.plugin.add(PodSandbox(host.pod.netns, name="unknown")).failed(11)
        host.plugin.add(host.pod).succeeded()
        host.plugin.add(host.pod).failed(102)


class Test15Annotations:
    """A colon truncates a value, a quote fails all tries, an entry without colon crashes the plugin."""

    @pytest.mark.parametrize("value", ["a:b:c", 'say "x"', "{}", "a}b", "", "ä", "\\"])
    def test_any_annotation_value_is_accepted(self, host: Host, value: str) -> None:
        host.serve(1, lambda vmi: vmi.annotated(note=value))
        host.plugin.add(host.pod).succeeded()

    def test_an_entry_without_colon_is_named(self, host: Host) -> None:
        host.serve(1)

        def without_colon(seen: ReceivedRequest) -> Reply | None:
            reply = host.agent.default_reply(seen)
            reply.document[0]["annotations"].append("{index}")
            return reply

        host.agent.before(without_colon)
        outcome = host.plugin.add(host.pod)
        assert "annotations must be a list of strings {key:value}" in outcome.failed(100)
        assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("version", ["0.2.0", "0.3.1", "1.0.0"])
def test_16_a_network_without_an_interface_of_the_pod_is_an_error_at_once(host: Host, version: str) -> None:
    """It is polled until the timeout; or `null` is printed with status 0, or the plugin crashes."""
    host.serve(2)
    begin = time.monotonic()
    message = host.plugin.add(host.pod, "net1", name="elsewhere", version=version).failed(7)
    assert time.monotonic() - begin < 0.45
    assert "the pod has no interface in network elsewhere" in message
    assert "demo/net-1" in message
    assert host.is_clean()


class Test17State:
    """Calls hold no lock; files are written in place; directories lack the x bit, and are world-readable."""

    def test_calls_for_one_container_are_serialized(self, host: Host) -> None:
        vmis = host.serve(4)
        same = [vmi.annotated(network="a", nad="demo/a") for vmi in vmis[1:]]
        host.agent.serve(host.pod.vm_name, [vmis[0], *same])
        with ThreadPoolExecutor(3) as pool:
            outcomes = pool.map(lambda number: host.plugin.add(host.pod, f"x{number}", name="a"), range(3))
        macs = {outcome.succeeded().document["interfaces"][1]["mac"] for outcome in outcomes}
        assert macs == {vmi.mac for vmi in same}

    def test_files_and_directories_are_accessible_to_root_only(self, host: Host) -> None:
        host.serve(1)
        host.plugin.add(host.pod).succeeded()
        for root in (host.plugin.state_dir, host.plugin.config_dir):
            for path in (root, *root.rglob("*")):
                assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


class Test18Http:
    """No timeouts: a hanging agent blocks the call forever. The address must be IPv4."""

    def test_a_hanging_agent_times_out(self, host: Host) -> None:
        host.agent.stall("GET")
        begin = time.monotonic()
        host.plugin.add(host.pod).failed(11)
        assert time.monotonic() - begin < 5

    @pytest.mark.parametrize(
        ("address", "shown"), [("::1", "[::1]:1"), ("127.0.0.1", "127.0.0.1:1"), ("localhost", "localhost:1")]
    )
    def test_the_agent_may_have_any_address(self, host: Host, address: str, shown: str) -> None:
        settings = {"agent-socket": "", "vrouter-ip": address, "vrouter-port": 1, "poll-timeout": 0.01}
        assert f"http://{shown}: Connection refused" in host.plugin.add(host.pod, settings=settings).failed(11)


def test_19_no_configuration_file_is_needed(host: Host) -> None:
    """Without a file of its own ADD and DEL fail, and sandboxes cannot be removed."""
    host.serve(1)
    assert not host.plugin.node_file.exists()
    host.plugin.add(host.pod).succeeded()
    host.plugin.delete(host.pod).succeeded()
    assert host.is_clean()


def test_20_the_result_has_sandbox_host_end_address_owners_and_version(host: Host) -> None:
    """All of them are missing."""
    host.serve(1)
    result = host.plugin.add(host.pod, version="0.3.1").succeeded().document
    assert result["cniVersion"] == "0.3.1"
    host_end, sandbox_end = result["interfaces"]
    assert host_end["name"] == host.plugin.node.links()[0]
    assert (sandbox_end["name"], sandbox_end["sandbox"]) == ("eth0", host.pod.netns)
    assert [each["interface"] for each in result["ips"]] == [1, 1]


def test_21_interfaces_are_created_in_index_order(host: Host) -> None:
    """They are created in the order of their uuids."""
    vmis = sorted(make_vmis(4, uid=host.pod.uid), key=lambda vmi: vmi.uuid, reverse=True)
    ordered = [vmi.annotated(index=f"{position}/4") for position, vmi in enumerate(vmis)]
    host.agent.serve(host.pod.vm_name, ordered)
    host.plugin.add(host.pod).succeeded()
    assert host.sandbox.links() == ["eth0", "eth1", "eth2", "eth3"]
    assert [vmi.mac in host.sandbox.ip("link", "show", f"eth{n}") for n, vmi in enumerate(ordered)] == [True] * 4


def test_22_of_two_interfaces_in_one_subnet_the_first_is_preferred(host: Host) -> None:
    """Both have the same route to it, without a metric; the host ends keep the kernel's settings."""
    subnets = [(Subnet(f"10.1.0.{n}", 24, "10.1.0.1"), Subnet(f"fd00::{n}", 64, "fd00::1")) for n in (5, 6, 7)]
    vmis = [replace(vmi, subnets=of_vmi) for vmi, of_vmi in zip(host.serve(3), subnets, strict=True)]
    host.agent.serve(host.pod.vm_name, vmis)
    host.plugin.add(host.pod).succeeded()
    ipv4 = [(each["dev"], each.get("metric")) for each in routes(host.sandbox, version=4, protocol="kernel")]
    assert ipv4 == [("eth0", None), ("eth1", 1), ("eth2", 2)]
    ipv6 = routes(host.sandbox, version=6, protocol="kernel")
    assert [(each["dev"], each["metric"]) for each in ipv6 if each["dst"] == "fd00::/64"] == [
        ("eth0", 256),
        ("eth1", 257),
        ("eth2", 258),
    ]
    for link in host.plugin.node.links():
        path = f"/proc/sys/net/ipv6/conf/{link}/accept_ra"
        assert host.plugin.node.run("cat", path).stdout.strip() == "0"


@pytest.mark.parametrize("annotations", [{}, {"kind": "Pod"}, {"network": "default", "note": "x"}])
def test_23_an_interface_is_never_used_before_it_is_annotated(host: Host, annotations: dict[str, str]) -> None:
    """On production clusters the race of number 6 caused a core dump, later an immediate failure."""
    host.serve(2, lambda vmi: replace(vmi, annotations=annotations))
    outcome = host.plugin.add(host.pod)
    assert "has no index yet" in outcome.failed(11)
    assert "Traceback" not in outcome.stderr
    assert host.is_clean()


def test_24_the_directory_of_port_files_is_created_with_its_parents(host: Host) -> None:
    """Without its parent no file is written, no port is plugged, and the ADD fails after the whole timeout."""
    vmis = host.serve(2)
    nowhere = host.plugin.folder / "not" / "there" / "yet"
    host.plugin.config_dir = nowhere
    host.plugin.settings["config-dir"] = str(nowhere)
    host.plugin.add(host.pod).succeeded()
    assert sorted(os.listdir(nowhere / host.pod.vm_name)) == sorted(vmi.uuid for vmi in vmis)
    host.plugin.delete(host.pod).succeeded()
    assert os.listdir(nowhere) == []
