"""Problems that users of CNI plugins report and that a plugin can cause: one test per problem.

The number in a test's name is that of the report in our list, whose other numbers are about installers, meta
plugins and managers.
"""

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from cni_contrail.link.errors import KernelError
from cni_contrail.plugin import respond
from cni_contrail.settings import Settings
from tests.cni_contrail.conftest import Attach, until
from tests.support.kernel_state import address_texts, defaults, link
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import (
    ReceivedRequest,
    ScriptedAgent,
    ScriptedNodeAgent,
    ServePod,
    Vmi,
    VrouterAgent,
    make_vmis,
)

DELEGATED = {"mode": "delegated"}


@pytest.fixture
def vmis(agent: ScriptedAgent, serve_pod: ServePod) -> list[Vmi]:
    return serve_pod(agent, 2)


@pytest.fixture
def attached(plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]) -> PodSandbox:
    plugin.add(pod).succeeded()
    return pod


@pytest.fixture
def is_clean(agent: ScriptedAgent, plugin: Plugin) -> Callable[[], None]:
    def check() -> None:
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})

    return check


class Test02TheAgentIsAwayAndPodsNeitherStartNorEnd:
    def test_add_times_out_with_code_11(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
        agent.stop()
        begin = time.monotonic()
        assert "agent unreachable" in plugin.add(pod, settings={"poll-timeout": 0.1}).failed(11)
        assert time.monotonic() - begin < 5

    def test_del_succeeds_and_the_agent_is_notified_later(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        agent.stop()
        plugin.delete(attached).succeeded()
        assert plugin.node.links() == []
        agent.start()
        other = attach(agent, "other")
        assert set(agent.owners().values()) == {other.container}


def test_03_del_ignores_errors_and_leaks_what_it_could_not_remove(
    attached: PodSandbox,
    agent: ScriptedAgent,
    plugin: Plugin,
    monkeypatch: pytest.MonkeyPatch,
    is_clean: Callable[[], None],
) -> None:
    def busy(*_: object, **_options: object) -> list[str]:
        raise KernelError("delete link tapx", 16, "Device or resource busy")

    environment = {**plugin.environment("DEL", attached), "CONTRAIL_CNI_CONFIG": str(plugin.node_file)}
    with monkeypatch.context() as kernel, plugin.node.inside():
        kernel.setattr("cni_contrail.commands.detach.remove_links", busy)
        answer = respond(environment, lambda: json.dumps(plugin.config()).encode())
    assert answer.status == 1
    assert "Device or resource busy" in answer.output
    assert plugin.record_path(attached).exists()
    plugin.delete(attached).succeeded()
    is_clean()


def test_04_pods_start_before_their_networks_can_be_attached(agent: ScriptedAgent, plugin: Plugin) -> None:
    agent.stop()
    plugin.status().failed(50)
    agent.start()
    plugin.status().succeeded()


def test_05_a_restarted_node_floods_the_agent_with_requests(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
) -> None:
    """An ADD before the pod's list exists sends one long-polling request and no others."""
    came = threading.Event()
    agent.before(lambda seen: came.set())
    settings = {"poll-timeout": 3, "poll-retries": 20}
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
    assert came.wait(10)
    agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid))
    adding.communicate(timeout=20)
    assert adding.returncode == 0
    assert [seen.method for seen in agent.requests] == ["GET", "POST"]


class Test06AddressesOfDeadPodsStayAfterARestart:
    def test_del_needs_neither_namespace_nor_result_nor_record(self, plugin: Plugin, pod: PodSandbox) -> None:
        plugin.delete(pod, netns="").succeeded()

    def test_orphaned_attachments_are_swept_by_the_next_call(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns, attach: Attach
    ) -> None:
        sandbox.delete()
        until(lambda: not plugin.node.links())
        other = attach(agent, "other")
        assert set(agent.owners().values()) == {other.container}
        assert not plugin.record_path(attached).exists()


class Test07DefaultRoutes:
    def test_each_family_has_one(self, attached: PodSandbox, sandbox: Netns) -> None:
        assert [each["dev"] for each in defaults(sandbox, version=4)] == ["eth0"]
        assert [each["dev"] for each in defaults(sandbox, version=6)] == ["eth0"]

    def test_a_request_for_one_family_does_not_affect_the_other(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
    ) -> None:
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="ipv4")])
        plugin.add(pod).succeeded()
        assert [each["dev"] for each in defaults(sandbox, version=4)] == ["eth1"]
        assert [each["dev"] for each in defaults(sandbox, version=6)] == ["eth0"]


def test_10_an_ipv6_address_is_tentative_when_the_pod_starts(attached: PodSandbox, sandbox: Netns) -> None:
    with sandbox.inside(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("fd00:1:1::5", 0))  # a tentative one cannot be bound
    assert "tentative" not in sandbox.ip("address", "show", "eth0", "scope", "global")


def test_11_neighbours_keep_the_mac_of_the_previous_owner(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]
) -> None:
    """The test captures frames on the link from its creation on."""
    wires: list[socket.socket] = []

    def listen(seen: ReceivedRequest) -> None:
        if seen.method == "POST":
            with plugin.node.inside():
                wires.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
                wires[0].bind((plugin.node.links()[0], 3))
                wires[0].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # clears "network is down": it is not up yet

    agent.before(listen)
    plugin.add(pod).succeeded()
    [wire] = wires
    with contextlib.closing(wire):
        frames = list(heard(wire))
    mac = bytes.fromhex(vmis[0].mac.replace(":", ""))
    address = socket.inet_pton(socket.AF_INET, "10.1.0.5")
    assert any(frame[22:32] == mac + address and frame[38:42] == address for frame in frames), "gratuitous ARP"
    address = socket.inet_pton(socket.AF_INET6, "fd00:1:1::5")
    assert any(frame[54] == 136 and frame[62:78] == address for frame in frames if len(frame) > 78), "advertisement"


def heard(wire: socket.socket) -> Iterator[bytes]:
    """Returns the frames received so far and those of the next moment."""
    wire.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while True:
            yield wire.recv(2000)


def test_12_a_late_del_of_an_old_sandbox_removes_the_interface_of_the_new_one(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    netns = make_netns("pod")
    newer = PodSandbox(netns.path, name=attached.name, uid=attached.uid)
    plugin.add(newer).succeeded()
    plugin.delete(attached).succeeded()
    assert netns.links() == ["eth0", "eth1"]
    assert set(agent.owners().values()) == {newer.container}


def test_13_add_waits_for_minutes_and_reports_only_a_timeout(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]
) -> None:
    """ADD times out after 8 s, under a meta plugin after 60 s; the error says what is missing, and where."""
    assert [Settings().agent_timeout(is_thick=is_thick) for is_thick in (True, False)] == [8, 60]
    agent.serve(pod.vm_name, vmis[:1])
    message = plugin.add(pod, settings={"poll-timeout": 0.1}).failed(11)
    for words in ("demo/web-0", agent.socket_path, "of 2 interfaces, index 1 is missing"):
        assert words in message


def test_14_one_network_twice_in_a_pod_mixes_addresses(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    first, *others = serve_pod(agent, 3)
    same = [vmi.annotated(nad="demo/a", config_name="a", attachment=f"net{n + 1}") for n, vmi in enumerate(others)]
    agent.serve(pod.vm_name, [first, *same])
    for ifname in ("net2", "net1"):  # in any order
        plugin.add(pod, ifname, name="a").succeeded()
    assert address_texts(sandbox, "net1")[0] == "10.1.1.5/24"
    assert address_texts(sandbox, "net2")[0] == "10.1.2.5/24"


def test_15_calls_fail_sporadically_while_links_come_and_go(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi], is_clean: Callable[[], None]
) -> None:
    """A netlink dump during changes may be inconsistent; ADD and DEL read routes and links."""
    done = threading.Event()
    batch = "\n".join(["link add come type veth peer name go", "link del come"] * 20).encode()

    def churn() -> None:
        while not done.is_set():
            for netns in (plugin.node.name, os.path.basename(pod.netns)):
                subprocess.run(["ip", "-n", netns, "-batch", "-"], input=batch, check=True, timeout=20)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(5):
            result = plugin.add(pod).succeeded().document
            plugin.check(pod, previous=result).succeeded()
            plugin.delete(pod).succeeded()
    finally:
        done.set()
        thread.join(30)
    is_clean()


class Test16RequestedAddressesAreIgnored:
    @pytest.mark.parametrize("requested", ["10.1.0.5", "10.1.0.5/24", "fd00:1:1::5"])
    def test_addresses_with_and_without_prefix_are_accepted(
        self, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi], requested: str
    ) -> None:
        plugin.add(pod, runtimeConfig={"ips": [requested], "mac": vmis[0].mac}).succeeded()

    def test_unmet_addresses_are_rejected_with_both_values(
        self, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]
    ) -> None:
        message = plugin.add(pod, runtimeConfig={"ips": ["10.1.0.77"]}).failed(7)
        assert "10.1.0.77" in message
        assert "10.1.0.5" in message


def test_17_the_mtu_is_wrong_on_one_end_or_on_secondary_interfaces(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
) -> None:
    agent.serve(pod.vm_name, [vmis[0], replace(vmis[1], mtu=8900)])
    result = plugin.add(pod, version="1.1.0").succeeded().document
    assert [each["mtu"] for each in result["interfaces"]] == [1400, 1400]
    assert [link(sandbox, f"eth{number}")["mtu"] for number in (0, 1)] == [1400, 8900]
    assert [link(plugin.node, name)["mtu"] for name in plugin.node.links()] == [1400, 8900]


class Test18StaleInterfacesOnTheHost:
    def test_each_link_names_its_pod(self, attached: PodSandbox, plugin: Plugin, vmis: list[Vmi]) -> None:
        aliases = [link(plugin.node, name)["ifalias"] for name in plugin.node.links()]
        assert aliases == [f"contrail {attached.container[:12]} demo/web-0 {vmi.uuid}" for vmi in vmis]

    def test_links_of_a_killed_add_do_not_block_the_next_one(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
    ) -> None:
        came = agent.stall("POST")
        killed = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config()))
        assert came.wait(10)
        plugin.kill(killed)
        killed.communicate(timeout=10)
        agent.clear_behaviours()
        plugin.add(pod).succeeded()
        assert sandbox.links() == ["eth0", "eth1"]
        assert len(plugin.node.links()) == 2


class Test19NamespacesOfNetworks:
    @pytest.fixture
    def alike(self, agent: ScriptedAgent, pod: PodSandbox, vmis: list[Vmi]) -> list[Vmi]:
        """Networks of one name in two namespaces, attached under unannounced interface names."""
        first, second = vmis
        third = make_vmis(3, uid=pod.uid)[2]
        alike = [
            each.annotated(index=f"{n}/3", nad=f"{namespace}/blue", config_name="blue", attachment="x")
            for n, namespace, each in ((1, "demo", second), (2, "prod", third))
        ]
        agent.serve(pod.vm_name, [first.annotated(index="0/3"), *alike])
        return alike

    def test_networks_of_one_name_are_distinguished_by_the_nad_setting(
        self, alike: list[Vmi], plugin: Plugin, pod: PodSandbox
    ) -> None:
        result = plugin.add(pod, "net1", name="blue", settings={"nad": "prod/blue"}).succeeded().document
        assert result["interfaces"][1]["mac"] == alike[1].mac

    def test_without_the_setting_the_error_names_both(self, alike: list[Vmi], plugin: Plugin, pod: PodSandbox) -> None:
        message = plugin.add(pod, "net1", name="blue").failed(7)
        assert "demo/blue" in message
        assert "prod/blue" in message


def test_20_check_is_so_slow_and_strict_that_pods_do_not_start(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns
) -> None:
    """CRI-O calls CHECK right after ADD: it calls no agent, and changes of a later plugin are no difference."""
    agent.stop()
    host_end, sandbox_end = (
        {"name": plugin.node.links()[0]},
        {"name": "eth0", "sandbox": attached.netns, "mac": "02:00:00:00:00:99"},
    )
    sandbox.ip("link", "set", "eth0", "mtu", "1300", "address", "02:00:00:00:00:99")
    sandbox.ip("route", "del", "default")
    begin = time.monotonic()
    plugin.check(attached, previous={"interfaces": [host_end, sandbox_end], "routes": []}).succeeded()
    assert time.monotonic() - begin < 2  # on a machine that is busy with other tests


@pytest.mark.parametrize(
    "cached", [None, "", "garbage", 5, [], {}, {"cniVersion": "0.1.0"}, {"interfaces": [{"sandbox": "/gone"}]}]
)
def test_21_the_cached_result_of_the_runtime_is_stale_or_corrupt(
    attached: PodSandbox, plugin: Plugin, is_clean: Callable[[], None], cached: object
) -> None:
    plugin.delete(attached, prevResult=cached).succeeded()
    is_clean()


def test_22_a_second_add_after_a_crash_finds_that_eth0_exists(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
) -> None:
    config = json.dumps(plugin.config())
    for step in (5, 10, 15):
        assert plugin.call(plugin.environment("ADD", pod), config, kill_at=step).status == -9
    plugin.add(pod).succeeded()
    assert sandbox.links() == ["eth0", "eth1"]


class Test23ThePodIsAnotherOfItsName:
    @pytest.mark.parametrize("kind", [ScriptedNodeAgent, VrouterAgent])
    def test_the_predecessors_list_is_ignored_and_its_own_awaited(
        self, agent_socket: str, plugin: Plugin, pod: PodSandbox, sandbox: Netns, kind: type[ScriptedAgent]
    ) -> None:
        with kind(agent_socket) as agent:
            agent.serve(pod.vm_name, make_vmis(1))
            own = make_vmis(2, uid=pod.uid, subnet=9)
            threading.Timer(0.2, agent.serve, (pod.vm_name, own)).start()
            result = plugin.add(pod, settings={"poll-timeout": 1, "poll-retries": 20}).succeeded().document
        assert result["interfaces"][1]["mac"] == own[0].mac
        assert sandbox.links() == ["eth0", "eth1"]

    def test_the_manifest_hash_of_a_static_pod_is_not_its_uid(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        """The runtime passes the hash of its manifest instead."""
        vrouter_agent.serve(pod.vm_name, make_vmis(1))
        arguments = f"{pod.args};K8S_POD_UID={'0d9a' * 8}"
        plugin.call(plugin.environment("ADD", pod, CNI_ARGS=arguments), json.dumps(plugin.config())).succeeded()


def test_24_runtimes_and_meta_plugins_collect_no_garbage(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns, is_clean: Callable[[], None]
) -> None:
    """So the plugin sweeps by itself; GC and STATUS exist for runtimes that call them."""
    plugin.status().succeeded()
    sandbox.delete()
    until(lambda: not plugin.node.links())
    plugin.delete(PodSandbox("")).succeeded()
    assert plugin.files() == [f"state/.pending/{attached.container}.{attached.uid}.json"]
    plugin.gc([]).succeeded()
    is_clean()
