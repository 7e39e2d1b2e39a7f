"""A Contrail vrouter agent: no addresses in its list, one port per request, one DELETE for a whole VM."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod, Subnet, Vmi, make_vmis

DELEGATED = {"mode": "delegated"}


def default_devices(sandbox: Netns) -> list[str]:
    lines = [*sandbox.ip("route").splitlines(), *sandbox.ip("-6", "route").splitlines()]
    words = [line.split() for line in lines if line.startswith("default")]
    return [each[each.index("dev") + 1] for each in words]


class TestTheSequence:
    def test_the_order_of_requests_is_that_of_the_upstream_plugin(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, node: Netns, serve_pod: ServePod
    ) -> None:
        """List, links, each port in its own request with its file written first, addresses last."""
        vmis = serve_pod(vrouter_agent, 3)
        links_at: dict[str, int] = {}
        files_at: list[int] = []

        def look(seen: ReceivedRequest) -> None:
            links_at.setdefault(f"{seen.method} {seen.path.split('/')[1]}", len(node.links()))
            if seen.method == "POST":
                files_at.append(len(list((plugin.config_dir / pod.vm_name).iterdir())))

        vrouter_agent.before(look)
        plugin.add(pod).succeeded()
        assert [(seen.method, seen.path) for seen in vrouter_agent.requests] == [
            ("GET", f"/vm-cfg/{pod.vm_name}"),
            ("POST", "/vm"),
            ("POST", "/vm"),
            ("POST", "/vm"),
            ("GET", f"/vm/{pod.uid}"),
        ]
        assert [seen.body["vmi-uuid"] for seen in vrouter_agent.received("POST")] == [vmi.uuid for vmi in vmis]
        assert links_at == {"GET vm-cfg": 0, "POST vm": 3, "GET vm": 3}
        assert files_at == [1, 2, 3]

    def test_interfaces_are_the_same_as_with_our_agent(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 3)
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

    def test_a_missing_ipv6_prefix_length_is_64(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        subnet = Subnet("fd00:9::5", 120, "fd00:9::1")
        serve_pod(vrouter_agent, change=lambda vmi: replace(vmi, subnets=(subnet,)))
        assert plugin.add(pod).succeeded().document["ips"][0]["address"] == "fd00:9::5/64"

    def test_the_default_route_follows_the_annotations(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 2)
        vrouter_agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="ipv6")])
        plugin.add(pod).succeeded()
        assert default_devices(sandbox) == ["eth0", "eth1"]

    def test_port_files_are_those_that_the_vrouter_agent_restores(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        folder = plugin.config_dir / pod.vm_name
        assert {path.name for path in folder.iterdir()} == {vmi.uuid for vmi in vmis}
        for path in folder.iterdir():
            assert json.loads(path.read_text()) == vrouter_agent.ports[path.name]
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
    def test_an_incomplete_list_is_awaited_and_the_error_names_what_is_missing(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        stage: Callable[[list[Vmi]], list[Vmi]],
        missing: str,
    ) -> None:
        vmis = serve_pod(vrouter_agent, 3)
        vrouter_agent.serve(pod.vm_name, stage(vmis))
        message = plugin.add(pod, settings={"poll-timeout": 0.1, "poll-retries": 2}).failed(11)
        assert missing in message
        assert "demo/web-0" in message
        assert (plugin.node.links(), plugin.files()) == ([], [])

        def complete(seen: ReceivedRequest) -> None:
            if len(vrouter_agent.received("GET", "/vm-cfg")) == asked + 3:
                vrouter_agent.serve(pod.vm_name, vmis)

        asked = len(vrouter_agent.received("GET", "/vm-cfg"))
        vrouter_agent.before(complete)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert sandbox.links() == ["eth0", "eth1", "eth2"]

    def test_the_list_of_a_predecessor_is_ignored(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        predecessor = make_vmis(1)
        vrouter_agent.serve(pod.vm_name, predecessor)
        message = plugin.add(pod).failed(11)
        assert predecessor[0].vm_uuid in message
        assert pod.uid in message

    def test_the_manifest_hash_of_a_static_pod_is_not_its_uid(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        """The runtime knows a static pod by the hash of its manifest, the agent by the UID of its mirror pod."""
        vrouter_agent.serve(pod.vm_name, make_vmis(1))
        environment = plugin.environment("ADD", pod, CNI_ARGS=f"{pod.args};K8S_POD_UID={'0d9a' * 8}")
        plugin.call(environment, json.dumps(plugin.config())).succeeded()

    def test_late_addresses_are_awaited(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 2)

        def late(seen: ReceivedRequest) -> Reply | None:
            if seen.method == "GET" and seen.path.startswith("/vm/"):
                number = len(vrouter_agent.received("GET", "/vm/"))
                if number == 1:
                    return Reply(404, {"error": "{ Not Found }"})
                if number == 2:
                    return Reply(200, vrouter_agent.default_reply(seen).document[:1])
            return None

        vrouter_agent.before(late)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert len(vrouter_agent.received("GET", "/vm/")) == 3

    @pytest.mark.parametrize(
        ("stated", "family"),
        [({"default_gw": "ipv6"}, 6), ({"default_gw": "ipv4"}, 4), ({"families": "4,6"}, 6), ({"families": "4,6"}, 4)],
    )
    def test_a_late_family_is_awaited_where_the_list_expects_it(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        stated: dict[str, str],
        family: int,
    ) -> None:
        serve_pod(vrouter_agent, change=lambda vmi: vmi.annotated(**stated))
        late = ("ip-address", "plen", "gateway", "dns-server")
        prefix = "v6-" if family == 6 else ""

        def without_family(seen: ReceivedRequest) -> Reply | None:
            if seen.method != "GET" or not seen.path.startswith("/vm/"):
                return None
            if len(vrouter_agent.received("GET", "/vm/")) > 2:
                return None
            reply = vrouter_agent.default_reply(seen)
            for key in late:
                reply.document[0].pop(prefix + key, None)
            return reply

        vrouter_agent.before(without_family)
        result = plugin.add(pod, settings=LONG_POLL).succeeded().document
        assert len(result["ips"]) == 2

    def test_a_missing_family_is_named(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        [vmi] = serve_pod(
            vrouter_agent, change=lambda vmi: replace(vmi.annotated(default_gw="ipv6"), subnets=vmi.subnets[:1])
        )
        assert f"no addresses for interface {vmi.uuid} (IPv6)" in plugin.add(pod).failed(11)

    @pytest.mark.parametrize("families", ["4", "", "5", "all"])
    def test_no_other_family_is_awaited(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, families: str
    ) -> None:
        serve_pod(vrouter_agent, change=lambda vmi: replace(vmi.annotated(families=families), subnets=vmi.subnets[:1]))
        assert len(plugin.add(pod).succeeded().document["ips"]) == 1

    def test_missing_addresses_are_rolled_back(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 2)
        vrouter_agent.reject("GET", "/vm/", status=404, text="Not Found")
        message = plugin.add(pod).failed(11)
        assert all(vmi.uuid in message for vmi in vmis)
        assert (plugin.node.links(), sandbox.links(), plugin.files(), vrouter_agent.ports) == ([], [], [], {})

    def test_a_rejected_port_is_rolled_back(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 3)

        def reject_second_port(seen: ReceivedRequest) -> Reply | None:
            second = seen.method == "POST" and len(vrouter_agent.received("POST")) == 2
            return Reply(500, {"error": "{ no }"}) if second else None

        vrouter_agent.before(reject_second_port)
        plugin.add(pod).failed(101)
        assert (plugin.node.links(), plugin.files(), vrouter_agent.ports) == ([], [], {})


class TestDelegated:
    def test_each_attachment_is_plugged_and_configured_on_its_own(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 3)
        plugin.add(pod, settings=DELEGATED).succeeded()
        for number in (2, 1):
            result = plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded().document
            assert result["interfaces"][1]["mac"] == vmis[number].mac
        assert sandbox.links() == ["eth0", "net2", "net1"]
        assert default_devices(sandbox) == ["eth0", "eth0"]
        assert len(vrouter_agent.ports) == 3

    def test_without_interface_0_there_is_no_default_route(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 2)
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert default_devices(sandbox) == []

    def test_a_requested_default_route_is_created(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 2)
        vrouter_agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, settings=DELEGATED).succeeded()
        assert default_devices(sandbox) == []
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert default_devices(sandbox) == ["net1", "net1"]

    def test_two_interfaces_of_one_network_are_distinguished_by_the_request(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 3)
        same = [vmi.annotated(network="net-1", interface=f"if{n}") for n, vmi in enumerate(vmis) if n]
        vrouter_agent.serve(pod.vm_name, [vmis[0], *same])
        result = plugin.add(pod, "if2", name="net-1").succeeded().document
        assert result["interfaces"][1]["mac"] == vmis[2].mac


class TestUnplugging:
    """DELETE unplugs all ports of the VM: sent with the last attachment of the VM's last container on the node."""

    def test_the_vm_is_unplugged_with_its_last_attachment(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 3)
        plugin.add(pod, settings=DELEGATED).succeeded()
        plugin.add(pod, "net1", name="net-1").succeeded()
        plugin.delete(pod, "net1", name="net-1").succeeded()
        assert vrouter_agent.received("DELETE") == []
        assert len(plugin.node.links()) == 1
        plugin.delete(pod, settings=DELEGATED).succeeded()
        [deleted] = vrouter_agent.received("DELETE")
        assert deleted.path == f"/vm/{pod.uid}"
        assert (plugin.node.links(), plugin.files(), vrouter_agent.ports) == ([], [], {})

    def test_the_vm_is_not_unplugged_while_a_newer_container_has_ports(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        newer = PodSandbox(make_netns("pod").path, name=pod.name, uid=pod.uid)
        plugin.add(newer).succeeded()
        vrouter_agent.requests.clear()
        plugin.delete(pod).succeeded()
        assert vrouter_agent.received("DELETE") == []
        assert len(plugin.files()) == 3
        plugin.delete(newer).succeeded()
        assert len(vrouter_agent.received("DELETE")) == 1
        assert plugin.files() == []

    def test_the_vm_of_a_recreated_pod_is_unplugged_while_its_successor_has_ports(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        """They have one name, and so one directory of port files, but two VMs."""
        serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        again = PodSandbox(make_netns("pod").path, name=pod.name)
        vrouter_agent.serve(again.vm_name, make_vmis(2, uid=again.uid, subnet=2))
        plugin.add(again).succeeded()
        plugin.delete(pod).succeeded()
        assert [seen.path for seen in vrouter_agent.received("DELETE")] == [f"/vm/{pod.uid}"]
        assert set(vrouter_agent.owners().values()) == {again.container}

    def test_a_pending_notification_of_a_recreated_pod_is_sent_while_its_successor_has_ports(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        vrouter_agent.stop()
        plugin.delete(pod).succeeded()
        vrouter_agent.start()
        again = PodSandbox(make_netns("pod").path, name=pod.name)
        vrouter_agent.serve(again.vm_name, make_vmis(2, uid=again.uid, subnet=2))
        plugin.add(again).succeeded()
        assert set(vrouter_agent.owners().values()) == {again.container}

    def test_a_pending_notification_is_dropped_when_the_vm_has_ports_again(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        vrouter_agent.stop()
        plugin.delete(pod).succeeded()
        assert len(plugin.files()) == 1
        vrouter_agent.start()
        newer = PodSandbox(make_netns("pod").path, name=pod.name, uid=pod.uid)
        plugin.add(newer).succeeded()
        assert vrouter_agent.requests[-1].method == "GET"
        assert len(vrouter_agent.received("DELETE")) == 1  # of ADD, for the devices of the older container
        assert set(vrouter_agent.owners().values()) == {newer.container}
        assert not (plugin.state_dir / ".pending").exists()


class TestTwoSandboxes:
    """kubelet creates a new sandbox before it deletes the old one, whose devices the agent keeps for its ports."""

    @pytest.fixture
    def newer(self, pod: PodSandbox, make_netns: Callable[[str], Netns]) -> PodSandbox:
        return PodSandbox(make_netns("pod").path, name=pod.name, uid=pod.uid)

    def devices(self, plugin: Plugin, vrouter_agent: ScriptedAgent, pod: PodSandbox, *ifnames: str) -> list[str]:
        """Returns the devices that the agent has for the interfaces of a container's records."""
        interfaces = [each for ifname in ifnames for each in plugin.record(pod, ifname)["interfaces"]]
        assert [vrouter_agent.ports[each["uuid"]]["host-ifname"] for each in interfaces] == [
            each["plan"]["host_name"] for each in interfaces
        ]
        return [each["plan"]["host_name"] for each in interfaces]

    def test_the_ports_get_the_devices_of_the_newer_one(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, newer: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 3)
        plugin.add(pod).succeeded()
        plugin.add(newer, settings=LONG_POLL).succeeded()
        assert len(self.devices(plugin, vrouter_agent, newer, "eth0")) == 3
        plugin.delete(pod).succeeded()
        assert len(self.devices(plugin, vrouter_agent, newer, "eth0")) == 3

    def test_other_ports_of_the_vm_are_plugged_again(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, newer: PodSandbox, serve_pod: ServePod
    ) -> None:
        """The agent unplugs only all ports of a VM."""
        serve_pod(vrouter_agent, 2)
        for each in (pod, newer):
            plugin.add(each, settings={**DELEGATED, **LONG_POLL}).succeeded()
            plugin.add(each, "net1", name="net-1", settings=LONG_POLL).succeeded()
            self.devices(plugin, vrouter_agent, each, "eth0", "net1")
        plugin.delete(pod, settings=DELEGATED).succeeded()
        plugin.delete(pod, "net1", name="net-1").succeeded()
        self.devices(plugin, vrouter_agent, newer, "eth0", "net1")

    def test_an_agent_that_never_lets_go_is_an_error_that_names_the_device(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, newer: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 1)
        plugin.add(pod).succeeded()
        vrouter_agent.before(lambda seen: Reply() if seen.method == "DELETE" else None)
        [device] = self.devices(plugin, vrouter_agent, pod, "eth0")
        assert f"has device {device} of an older sandbox" in plugin.add(newer).failed(11)
