"""Against an agent as upstream ships it: no addresses in its list, one port per request, one DELETE for a whole VM."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.netns import Netns
from tests.support.plugin import PATIENT, Plugin, PodSandbox
from tests.support.scripted_agents import Reply, ScriptedAgent, Seen, ServePod, Subnet, Vmi, make_vmis

DELEGATED = {"mode": "delegated"}


def default_devices(sandbox: Netns) -> list[str]:
    lines = [*sandbox.ip("route").splitlines(), *sandbox.ip("-6", "route").splitlines()]
    words = [line.split() for line in lines if line.startswith("default")]
    return [each[each.index("dev") + 1] for each in words]


class TestTheSequence:
    def test_it_is_upstreams(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, node: Netns, serve_pod: ServePod
    ) -> None:
        """List, links, each port by itself with its file written first, addresses last."""
        vmis = serve_pod(stock_agent, 3)
        links_at: dict[str, int] = {}
        files_at: list[int] = []

        def look(seen: Seen) -> None:
            links_at.setdefault(f"{seen.method} {seen.path.split('/')[1]}", len(node.links()))
            if seen.method == "POST":
                files_at.append(len(list((plugin.config_dir / pod.machine_name).iterdir())))

        stock_agent.before(look)
        plugin.add(pod).succeeded()
        assert [(seen.method, seen.path) for seen in stock_agent.seen] == [
            ("GET", f"/vm-cfg/{pod.machine_name}"),
            ("POST", "/vm"),
            ("POST", "/vm"),
            ("POST", "/vm"),
            ("GET", f"/vm/{pod.uid}"),
        ]
        assert [seen.body["vmi-uuid"] for seen in stock_agent.asked("POST")] == [vmi.uuid for vmi in vmis]
        assert links_at == {"GET vm-cfg": 0, "POST vm": 3, "GET vm": 3}
        assert files_at == [1, 2, 3]

    def test_all_is_made_as_with_ours(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 3)
        result = plugin.add(pod).succeeded().document
        assert result["interfaces"][1] == {"name": "eth0", "mac": vmis[0].mac, "sandbox": pod.netns}
        assert [each["address"] for each in result["ips"]] == ["10.1.0.5/24", "fd00:1:1::5/64"]
        assert sandbox.links() == ["eth0", "eth1", "eth2"]
        for position in range(3):
            shown = sandbox.ip("address", "show", "dev", f"eth{position}")
            assert f"10.1.{position}.5/24" in shown
            assert f"fd00:1:{position + 1}::5/64" in shown
            assert "mtu 1500" in shown
        assert default_devices(sandbox) == ["eth0", "eth0"]
        plugin.check(pod, previous=result).succeeded()

    def test_a_prefix_that_it_does_not_tell_is_64(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        subnet = Subnet("fd00:9::5", 120, "fd00:9::1")
        serve_pod(stock_agent, change=lambda vmi: replace(vmi, subnets=(subnet,)))
        assert plugin.add(pod).succeeded().document["ips"][0]["address"] == "fd00:9::5/64"

    def test_the_default_route_follows_the_annotations(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 2)
        stock_agent.serve(pod.machine_name, [vmis[0], vmis[1].annotated(default_gw="ipv6")])
        plugin.add(pod).succeeded()
        assert default_devices(sandbox) == ["eth0", "eth1"]

    def test_the_files_are_what_upstreams_agent_reads_again(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 2)
        plugin.add(pod).succeeded()
        folder = plugin.config_dir / pod.machine_name
        assert {path.name for path in folder.iterdir()} == {vmi.uuid for vmi in vmis}
        for path in folder.iterdir():
            assert json.loads(path.read_text()) == stock_agent.ports[path.name]
            assert path.stat().st_mode & 0o077 == 0


class TestWaiting:
    @pytest.mark.parametrize(
        ("stage", "missing"),
        [
            (lambda vmis: [], "has no interfaces"),
            (lambda vmis: vmis[:1], "of 3 interfaces, index 1, 2 is missing"),
            (lambda vmis: vmis[1:], "of 3 interfaces, index 0 is missing"),
            (lambda vmis: [*vmis[:2], replace(vmis[2], annotations={})], "has no index yet"),
            (lambda vmis: [*vmis[:2], replace(vmis[2], annotations={"kind": "Pod"})], "has no index yet"),
            (lambda vmis: [*vmis[:2], vmis[2].annotated(index="2/4")], "disagree"),
            (lambda vmis: [*vmis[:2], vmis[2].annotated(index="1/3")], "duplicate index"),
        ],
    )
    def test_a_list_that_comes_in_parts_is_waited_for_and_what_is_missing_is_named(
        self,
        stock_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        stage: Callable[[list[Vmi]], list[Vmi]],
        missing: str,
    ) -> None:
        vmis = serve_pod(stock_agent, 3)
        stock_agent.serve(pod.machine_name, stage(vmis))
        message = plugin.add(pod, settings={"poll-timeout": 0.1, "poll-retries": 2}).failed(11)
        assert missing in message
        assert "demo/web-0" in message
        assert (plugin.node.links(), plugin.files()) == ([], [])

        def complete(seen: Seen) -> None:
            if len(stock_agent.asked("GET", "/vm-cfg")) == asked + 3:
                stock_agent.serve(pod.machine_name, vmis)

        asked = len(stock_agent.asked("GET", "/vm-cfg"))
        stock_agent.before(complete)
        plugin.add(pod, settings=PATIENT).succeeded()
        assert sandbox.links() == ["eth0", "eth1", "eth2"]

    def test_the_list_of_a_predecessor_is_not_taken(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        predecessor = make_vmis(1)
        stock_agent.serve(pod.machine_name, predecessor)
        message = plugin.add(pod).failed(11)
        assert predecessor[0].machine in message
        assert pod.uid in message

    def test_a_static_pods_hash_is_no_uid(self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
        """The runtime knows a static pod by the hash of its manifest, the agent by the uid of its mirror."""
        stock_agent.serve(pod.machine_name, make_vmis(1))
        environment = plugin.environment("ADD", pod, CNI_ARGS=f"{pod.args};K8S_POD_UID={'0d9a' * 8}")
        plugin.call(environment, json.dumps(plugin.config())).succeeded()

    def test_addresses_that_come_late_are_waited_for(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(stock_agent, 2)

        def late(seen: Seen) -> Reply | None:
            if seen.method == "GET" and seen.path.startswith("/vm/"):
                number = len(stock_agent.asked("GET", "/vm/"))
                if number == 1:
                    return Reply(404, {"error": "{ Not Found }"})
                if number == 2:
                    return Reply(200, stock_agent.usual(seen).document[:1])
            return None

        stock_agent.before(late)
        plugin.add(pod, settings=PATIENT).succeeded()
        assert len(stock_agent.asked("GET", "/vm/")) == 3

    def test_addresses_that_never_come_leave_nothing(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 2)
        stock_agent.refuse("GET", "/vm/", status=404, text="Not Found")
        message = plugin.add(pod).failed(11)
        assert all(vmi.uuid in message for vmi in vmis)
        assert (plugin.node.links(), sandbox.links(), plugin.files(), stock_agent.ports) == ([], [], [], {})

    def test_a_port_that_is_refused_leaves_nothing(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(stock_agent, 3)

        def refuse_the_second(seen: Seen) -> Reply | None:
            second = seen.method == "POST" and len(stock_agent.asked("POST")) == 2
            return Reply(500, {"error": "{ no }"}) if second else None

        stock_agent.before(refuse_the_second)
        plugin.add(pod).failed(101)
        assert (plugin.node.links(), plugin.files(), stock_agent.ports) == ([], [], {})


class TestDelegated:
    def test_each_attachment_is_told_and_configured_by_itself(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 3)
        plugin.add(pod, settings=DELEGATED).succeeded()
        for number in (2, 1):
            result = plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded().document
            assert result["interfaces"][1]["mac"] == vmis[number].mac
        assert sandbox.links() == ["eth0", "net2", "net1"]
        assert default_devices(sandbox) == ["eth0", "eth0"]
        assert len(stock_agent.ports) == 3

    def test_without_our_index_0_there_is_no_default_route(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(stock_agent, 2)
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert default_devices(sandbox) == []

    def test_one_that_is_asked_for_is_made(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 2)
        stock_agent.serve(pod.machine_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, settings=DELEGATED).succeeded()
        assert default_devices(sandbox) == []
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert default_devices(sandbox) == ["net1", "net1"]

    def test_the_requested_interface_tells_two_of_one_network_apart(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(stock_agent, 3)
        same = [vmi.annotated(network="net-1", interface=f"if{n}") for n, vmi in enumerate(vmis) if n]
        stock_agent.serve(pod.machine_name, [vmis[0], *same])
        result = plugin.add(pod, "if2", name="net-1").succeeded().document
        assert result["interfaces"][1]["mac"] == vmis[2].mac


class TestForgetting:
    """DELETE forgets all ports of the VM: it is sent with the last attachment of the VM's last container here."""

    def test_it_waits_for_the_last_attachment(
        self, stock_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(stock_agent, 3)
        plugin.add(pod, settings=DELEGATED).succeeded()
        plugin.add(pod, "net1", name="net-1").succeeded()
        plugin.delete(pod, "net1", name="net-1").succeeded()
        assert stock_agent.asked("DELETE") == []
        assert len(plugin.node.links()) == 1
        plugin.delete(pod, settings=DELEGATED).succeeded()
        [told] = stock_agent.asked("DELETE")
        assert told.path == f"/vm/{pod.uid}"
        assert (plugin.node.links(), plugin.files(), stock_agent.ports) == ([], [], {})

    def test_it_waits_for_a_newer_container_of_the_pod(
        self,
        stock_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(stock_agent, 2)
        plugin.add(pod).succeeded()
        newer = PodSandbox(make_netns("pod").path, name=pod.name, uid=pod.uid)
        plugin.add(newer).succeeded()
        plugin.delete(pod).succeeded()
        assert stock_agent.asked("DELETE") == []
        assert len(plugin.files()) == 3
        plugin.delete(newer).succeeded()
        assert len(stock_agent.asked("DELETE")) == 1
        assert plugin.files() == []

    def test_what_was_kept_is_dropped_when_the_vm_has_ports_again(
        self,
        stock_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(stock_agent, 2)
        plugin.add(pod).succeeded()
        stock_agent.stop()
        plugin.delete(pod).succeeded()
        assert len(plugin.files()) == 1
        stock_agent.start()
        newer = PodSandbox(make_netns("pod").path, name=pod.name, uid=pod.uid)
        plugin.add(newer).succeeded()
        assert stock_agent.asked("DELETE") == []
        assert len(stock_agent.ports) == 2
        assert not (plugin.state_dir / ".pending").exists()
