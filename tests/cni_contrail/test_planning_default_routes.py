"""Default-gateway rule per family, thick and delegated, and restoring replaced default routes."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from cni_contrail.interfaces.planning import assign_default_routes
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Subnet, Vmi, make_vmis
from tests.support.served_interfaces import node_agent_list, vrouter_agent_list

DELEGATED = {"mode": "delegated"}


def only(vmi: Vmi, family: int) -> Vmi:
    """The same interface with addresses of one family only."""
    return replace(vmi, subnets=tuple(each for each in vmi.subnets if (":" in each.address) == (family == 6)))


def owners(vmis: list[Vmi], *, primary_is_ours: bool = True) -> dict[str, tuple[int, bool]]:
    """Family to position and `asked` of the interface with the default route."""
    interfaces = node_agent_list(vmis).interfaces
    routes = assign_default_routes(interfaces, primary_is_ours=primary_is_ours)
    return {
        "v6" if ":" in route.gateway else "v4": (each.position, route.asked)
        for each in interfaces
        for route in routes.get(each.uuid, ())
    }


class TestTheRule:
    def test_without_annotations_index_0_has_both_default_routes(self) -> None:
        assert owners(make_vmis(3)) == {"v4": (0, False), "v6": (0, False)}

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("true", {"v4": (2, True), "v6": (2, True)}),
            ("ipv4", {"v4": (2, True), "v6": (0, False)}),
            ("ipv6", {"v4": (0, False), "v6": (2, True)}),
        ],
    )
    def test_an_annotation_moves_the_families_that_it_covers(
        self, value: str, expected: dict[str, tuple[int, bool]]
    ) -> None:
        vmis = make_vmis(3)
        vmis[2] = vmis[2].annotated(default_gw=value)
        assert owners(vmis) == expected

    def test_none_at_index_0_assigns_no_default_route(self) -> None:
        vmis = make_vmis(3)
        vmis[0] = vmis[0].annotated(default_gw="none")
        assert owners(vmis) == {}
        vmis[1] = vmis[1].annotated(default_gw="ipv6")
        assert owners(vmis) == {"v6": (1, True)}

    def test_without_a_gateway_at_index_0_the_next_index_with_one_has_it(self) -> None:
        vmis = make_vmis(3)
        vmis[0] = only(vmis[0], 4)
        vmis[1] = replace(vmis[1], subnets=(Subnet("fd00::5", 64),))
        assert owners(vmis) == {"v4": (0, False), "v6": (2, False)}

    def test_a_request_of_an_interface_without_gateway_is_ignored(self) -> None:
        vmis = make_vmis(2)
        vmis[1] = only(vmis[1].annotated(default_gw="true"), 4)
        assert owners(vmis) == {"v4": (1, True), "v6": (0, False)}

    def test_if_another_plugin_may_own_index_0_only_requested_ones_are_assigned(self) -> None:
        vmis = make_vmis(3)
        assert owners(vmis, primary_is_ours=False) == {}
        vmis[1] = vmis[1].annotated(default_gw="ipv4")
        assert owners(vmis, primary_is_ours=False) == {"v4": (1, True)}

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_with_the_vrouter_agent_index_0_has_them_while_other_addresses_are_unknown(self, position: int) -> None:
        interfaces = vrouter_agent_list(make_vmis(3), plugged=[position]).interfaces
        routes = assign_default_routes(interfaces, primary_is_ours=True)
        assert len(routes.get(interfaces[position].uuid, ())) == (2 if position == 0 else 0)

    def test_with_the_vrouter_agent_a_request_elsewhere_keeps_it_from_index_0(self) -> None:
        vmis = make_vmis(2)
        vmis[1] = vmis[1].annotated(default_gw="ipv4")
        interfaces = vrouter_agent_list(vmis, plugged=[0]).interfaces
        [route] = assign_default_routes(interfaces, primary_is_ours=True)[interfaces[0].uuid]
        assert ":" in route.gateway


def gateways(sandbox: Netns) -> list[str]:
    """`gateway dev` of all default routes."""
    lines = [*sandbox.ip("route").splitlines(), *sandbox.ip("-6", "route").splitlines()]
    words = [line.split() for line in lines if line.startswith("default")]
    return [f"{each[each.index('via') + 1]} {each[each.index('dev') + 1]}" for each in words]


class TestThick:
    def test_the_requesting_interface_has_it_and_the_result_has_none(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 3)
        agent.serve(pod.vm_name, [vmis[0], vmis[1], vmis[2].annotated(default_gw="true")])
        result = plugin.add(pod).succeeded().document
        assert gateways(sandbox) == ["10.1.2.1 eth2", "fd00:1:3::1 eth2"]
        assert "routes" not in result

    def test_families_can_have_different_interfaces(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="ipv6")])
        result = plugin.add(pod).succeeded().document
        assert gateways(sandbox) == ["10.1.0.1 eth0", "fd00:1:2::1 eth1"]
        assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]

    def test_there_may_be_no_default_route(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, change=lambda vmi: vmi.annotated(default_gw="none"))
        plugin.add(pod).succeeded()
        assert gateways(sandbox) == []


class TestDelegated:
    def test_it_stays_with_our_index_0(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod, settings=DELEGATED).succeeded()
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert gateways(sandbox) == ["10.1.0.1 eth0", "fd00:1:1::1 eth0"]

    def test_the_next_index_has_what_our_index_0_cannot(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.serve(pod.vm_name, [only(vmis[0], 4), vmis[1]])
        plugin.add(pod, settings=DELEGATED).succeeded()
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert gateways(sandbox) == ["10.1.0.1 eth0", "fd00:1:2::1 net1"]

    def test_without_our_index_0_none_is_added(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.serve(pod.vm_name, [only(vmis[0], 4), vmis[1]])
        result = plugin.add(pod, "net1", name="net-1").succeeded().document
        assert gateways(sandbox) == []
        assert "routes" not in result

    def test_a_requested_one_replaces_ours_and_del_restores_ours(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        plugin.add(pod, settings=DELEGATED).succeeded()
        before = gateways(sandbox)
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="ipv4")])
        result = plugin.add(pod, "net1", name="net-1").succeeded().document
        assert gateways(sandbox) == ["10.1.1.1 net1", "fd00:1:1::1 eth0"]
        assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.1.1.1"}]
        plugin.delete(pod, "net1", name="net-1").succeeded()
        assert gateways(sandbox) == before

    @pytest.mark.parametrize("named", [True, False])
    def test_another_plugins_default_is_restored_by_a_del_with_the_sandbox(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        named: bool,
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        sandbox.ip("link", "add", "eth0", "type", "veth", "peer", "name", "br-end", "netns", plugin.node.name)
        plugin.node.ip("link", "set", "br-end", "up")
        sandbox.ip("link", "set", "eth0", "up")
        sandbox.ip("address", "add", "192.0.2.2/24", "dev", "eth0")
        sandbox.ip("route", "add", "default", "via", "192.0.2.1")
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert gateways(sandbox) == ["10.1.1.1 net1", "fd00:1:2::1 net1"]
        assert [each["gateway"] for each in plugin.record(pod, "net1")["replaced"]] == ["192.0.2.1"]
        plugin.delete(pod, "net1", name="net-1", netns=pod.netns if named else "").succeeded()
        assert gateways(sandbox) == (["192.0.2.1 eth0"] if named else [])

    @pytest.mark.parametrize("finished", [True, False], ids=["finished", "killed before its end"])
    def test_no_default_is_restored_in_another_sandbox(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
        finished: bool,
    ) -> None:
        """Another pod's by now, if the runtime has used the path again; or the host's own."""
        vmis = serve_pod(agent, 2)
        plugin.add(pod, settings=DELEGATED).succeeded()
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, "net1", name="net-1").succeeded()
        other = make_netns("pod") if finished else plugin.node
        if not finished:
            path = plugin.record_path(pod, "net1")
            path.write_text(json.dumps({**plugin.record(pod, "net1"), "finished": False, "sandbox_id": -1}))
        other.ip("link", "add", "eth0", "type", "veth", "peer", "name", "far-end")
        other.ip("link", "set", "far-end", "up")
        other.ip("link", "set", "eth0", "up")
        other.ip("address", "add", "10.1.0.7/24", "dev", "eth0")
        outcome = plugin.delete(pod, "net1", name="net-1", netns=other.path)
        assert outcome.status == (0 if finished else 1)
        assert gateways(other) == []

    @pytest.mark.parametrize("is_same", [True, False], ids=["same sandbox", "another sandbox"])
    def test_after_a_killed_add_only_its_own_sandbox_is_changed(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
        is_same: bool,
    ) -> None:
        vmis = serve_pod(agent, 2)
        plugin.add(pod, settings=DELEGATED).succeeded()
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, "net1", name="net-1").succeeded()
        path = plugin.record_path(pod, "net1")
        path.write_text(json.dumps({**plugin.record(pod, "net1"), "finished": False, "sandbox_id": -1}))
        found = sandbox
        if not is_same:
            found = make_netns("pod")
            found.ip("link", "add", "eth0", "type", "veth", "peer", "name", "far-end")
            found.ip("link", "set", "far-end", "up")
            found.ip("link", "set", "eth0", "up")
            found.ip("address", "add", "10.1.0.7/24", "dev", "eth0")
        outcome = plugin.delete(pod, "net1", name="net-1", netns=found.path).succeeded()
        assert bool(gateways(found)) is is_same
        assert ("is another sandbox than that of ADD" in outcome.stderr) is not is_same

    def test_a_replaced_default_is_restored_if_the_add_fails_late(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, settings=DELEGATED).succeeded()
        sandbox.ip("route", "add", "default", "via", "10.1.0.9")
        agent.reject("POST")
        plugin.add(pod, "net1", name="net-1").failed(101)
        assert gateways(sandbox) == ["10.1.0.9 eth0"]

    def test_after_the_whole_pod_is_deleted_nothing_is_restored(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        plugin.add(pod, settings=DELEGATED).succeeded()
        agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="true")])
        plugin.add(pod, "net1", name="net-1").succeeded()
        for ifname, name in (("eth0", "contrail-k8s-cni"), ("net1", "net-1")):
            plugin.delete(pod, ifname, name=name).succeeded()
        assert gateways(sandbox) == []
        assert plugin.files() == []
