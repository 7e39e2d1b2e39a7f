"""Interface selection in delegated mode."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.selection import select_interface
from cni_contrail.settings import Settings
from tests.support.netns import Netns
from tests.support.plugin import DEFAULT_NETWORK, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Vmi, make_vmis
from tests.support.served_interfaces import node_agent_list, vrouter_agent_list


def vmis_in(*nads: str) -> list[Vmi]:
    """A pod with the cluster's network and these attachments: `namespace/name` each, or `namespace/name=config`."""
    vmis = make_vmis(len(nads) + 1)
    for position, text in enumerate(nads, start=1):
        nad, _, config_name = text.partition("=")
        name = nad.split("/")[1]
        vmis[position] = vmis[position].annotated(network=name, nad=nad, config_name=config_name or name)
    return vmis


def select(
    vmis: list[Vmi], network: str, ifname: str, held: dict[str, str] | None = None, nad: str = "", previous: str = ""
) -> int:
    """Returns the position of the selected interface."""
    settings = Settings(nad=nad)
    return select_interface(
        node_agent_list(vmis), held or {}, network=network, ifname=ifname, settings=settings, previous=previous
    ).position


def select_or_none(vmis: list[Vmi], network: str, ifname: str, held: dict[str, str]) -> int | None:
    """Returns the position of the selected interface, None if the call is rejected."""
    try:
        return select(vmis, network, ifname, held)
    except PluginError:
        return None


def rejected(vmis: list[Vmi], network: str, ifname: str, held: dict[str, str] | None = None, nad: str = "") -> str:
    with pytest.raises(PluginError) as caught:
        select(vmis, network, ifname, held, nad)
    assert caught.value.code == Code.INVALID_CONFIG
    return caught.value.message


class TestSelection:
    def test_the_default_network_is_index_0(self) -> None:
        assert select(vmis_in("demo/a"), DEFAULT_NETWORK, "eth0") == 0
        assert select(vmis_in("demo/a"), DEFAULT_NETWORK, "net1") == 0

    def test_another_network_is_found_by_its_config_name(self) -> None:
        vmis = vmis_in("demo/a", "demo/b=other", "demo/c")
        assert select(vmis, "other", "net2") == 2
        assert select(vmis, "c", "net3") == 3

    def test_the_attachment_that_the_meta_plugin_numbers_is_selected(self) -> None:
        vmis = vmis_in("demo/a", "demo/a", "demo/a")
        assert [select(vmis, "a", f"net{number}") for number in (3, 1, 2)] == [3, 1, 2]

    def test_an_unknown_attachment_of_one_nad_gets_the_lowest_free_index(self) -> None:
        vmis = vmis_in("demo/a", "demo/a")
        assert select(vmis, "a", "other") == 1
        assert select(vmis, "a", "other", held={vmis[1].uuid: "net1"}) == 2

    def test_the_setting_nad_takes_precedence_over_the_name(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        assert select(vmis, "a", "other", nad="blue/a") == 2
        assert select(vmis, "whatever", "other", nad="red/a") == 1

    def test_two_nads_of_one_name_are_distinguished_by_the_attachment(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        assert select(vmis, "a", "net2") == 2

    def test_an_unknown_attachment_of_two_nads_of_one_name_is_rejected(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        message = rejected(vmis, "a", "other")
        assert "red/a" in message
        assert "blue/a" in message

    def test_names_that_are_counted_differently_are_rejected(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        held = {vmis[2].uuid: "net2"}  # red's, had the manager known of a default network before it
        message = rejected(vmis, "a", "net3", held)
        assert "attachment net3" in message
        assert f"1 (red/a, {vmis[1].uuid}) as net1" in message
        assert f"2 (blue/a, {vmis[2].uuid}) as net2" in message

    def test_index_0_is_eth0_if_its_network_is_of_a_nad(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        vmis[0] = vmis[0].annotated(nad="green/a", config_name="a")
        assert [select(vmis, "a", ifname) for ifname in ("net2", "eth0", "net1")] == [2, 0, 1]
        assert "green/a" in rejected(vmis, "a", "other")

    def test_a_nad_may_have_the_name_of_the_default_network(self) -> None:
        vmis = vmis_in(f"demo/a={DEFAULT_NETWORK}")
        assert [select(vmis, DEFAULT_NETWORK, ifname) for ifname in ("net1", "eth0")] == [1, 0]
        assert "demo/a" in rejected(vmis, DEFAULT_NETWORK, "other")

    def test_a_network_that_the_pod_does_not_join_is_rejected(self) -> None:
        message = rejected(vmis_in("demo/a"), "b", "net1")
        assert message.startswith("the pod has no interface in network b; it has 0 (")
        assert "demo/a" in message

    def test_errors_name_the_setting_nad(self) -> None:
        vmis = vmis_in("red/a", "blue/a")
        assert rejected(vmis, "a", "net1", nad="demo/b").startswith(
            "the pod has no interface of NAD demo/b; it has 0 ("
        )
        held = {vmis[2].uuid: "net2"}
        assert rejected(vmis, "a", "net1", held, nad="blue/a").startswith("all interfaces of NAD blue/a are taken: 2 (")
        whole = rejected(vmis, DEFAULT_NETWORK, "net9", nad="blue/a")
        assert whole.startswith("attachment net9 of NAD blue/a is not expected; expected: 0 (")

    def test_if_all_are_taken_the_holders_are_named(self) -> None:
        vmis = vmis_in("demo/a")
        message = rejected(vmis, "a", "net9", held={vmis[1].uuid: "net1"})
        assert message.startswith("all interfaces of network a are taken: 1 (demo/a")
        assert "by net1" in message
        assert "by eth0" in rejected(vmis, DEFAULT_NETWORK, "eth1", held={vmis[0].uuid: "eth0"})

    def test_an_attachment_keeps_its_previous_interface(self) -> None:
        vmis = vmis_in("demo/a", "demo/a")
        assert select(vmis, "a", "other", previous=vmis[2].uuid) == 2
        assert select(vmis, "a", "other", held={vmis[2].uuid: "net2"}, previous=vmis[2].uuid) == 1

    def test_with_the_vrouter_agent_bare_names_and_requested_interfaces_count(self) -> None:
        vmis = vmis_in("red/a", "blue/b=x", "blue/b=x")
        vmis[3] = vmis[3].annotated(interface="left")
        served = vrouter_agent_list(vmis)

        def select_with_vrouter_agent(network: str, ifname: str) -> int:
            return select_interface(served, {}, network=network, ifname=ifname, settings=Settings()).position

        assert select_with_vrouter_agent("a", "net1") == 1
        assert select_with_vrouter_agent("b", "net2") == 2
        assert select_with_vrouter_agent("b", "left") == 3
        assert select_with_vrouter_agent(DEFAULT_NETWORK, "eth0") == 0


nads = st.lists(st.sampled_from(["red/a", "blue/a", "red/b", "blue/b=a"]), min_size=1, max_size=6)


class TestInvariants:
    @given(nads, st.randoms(use_true_random=False))
    def test_attachments_in_any_order_get_their_own_interfaces(self, chosen: list[str], random: object) -> None:
        vmis = vmis_in(*chosen)
        order = list(range(1, len(vmis)))
        random.shuffle(order)  # type: ignore[attr-defined]  # hypothesis types it as an object
        held: dict[str, str] = {}
        for position in order:
            network = vmis[position].annotations["config-name"]
            assert select(vmis, network, f"net{position}", held) == position
            held[vmis[position].uuid] = f"net{position}"

    @given(nads, st.data())
    def test_no_interface_is_selected_twice_or_for_another_network(
        self, chosen: list[str], data: st.DataObject
    ) -> None:
        vmis = vmis_in(*chosen)
        ifnames = st.sampled_from([f"net{number}" for number in range(1, 9)] + ["x", "y", "z"])
        held: dict[str, str] = {}
        for ifname in data.draw(st.lists(ifnames, unique=True)):
            network = data.draw(st.sampled_from(["a", "b"]))
            position = select_or_none(vmis, network, ifname, held)
            if position is not None:
                assert vmis[position].uuid not in held
                assert vmis[position].annotations["config-name"] == network
                held[vmis[position].uuid] = ifname

    @given(nads)
    def test_the_default_network_is_never_selected_for_a_nad(self, chosen: list[str]) -> None:
        vmis = vmis_in(*chosen)
        for name in ("default", "a", "b"):
            assert select_or_none(vmis, name, "other", {}) != 0


@pytest.fixture
def attach(plugin: Plugin, pod: PodSandbox) -> Callable[..., str]:
    """Attaches as a meta plugin does and returns the MAC of the interface."""

    def attach(network: str, ifname: str) -> str:
        result = plugin.add(pod, ifname, name=network, settings={"mode": "delegated"}).succeeded().document
        assert result["interfaces"][1]["name"] == ifname
        mac: str = result["interfaces"][1]["mac"]
        return mac

    return attach


class TestCalledByAMetaPlugin:
    @pytest.fixture
    def vmis(self, agent: ScriptedAgent, pod: PodSandbox, serve_pod: ServePod) -> list[Vmi]:
        """The cluster's network, NAD net-a three times, and a NAD of the same name in another namespace."""
        vmis = serve_pod(agent, 5)
        for position in (1, 2, 3):
            vmis[position] = vmis[position].annotated(network="net-a", nad="demo/net-a", config_name="net-a")
        vmis[4] = vmis[4].annotated(network="net-a", nad="other/net-a", config_name="net-a")
        agent.serve(pod.vm_name, vmis)
        return vmis

    def test_each_call_attaches_one_interface(
        self, attach: Callable[..., str], vmis: list[Vmi], sandbox: Netns, agent: ScriptedAgent, pod: PodSandbox
    ) -> None:
        assert attach(DEFAULT_NETWORK, "eth0") == vmis[0].mac
        assert sandbox.links() == ["eth0"]
        assert [attach("net-a", f"net{number}") for number in (1, 2, 3, 4)] == [vmi.mac for vmi in vmis[1:]]
        assert sandbox.links() == ["eth0", "net1", "net2", "net3", "net4"]
        assert agent.owners() == {vmi.uuid: pod.container for vmi in vmis}

    def test_calls_out_of_order_get_the_same(self, attach: Callable[..., str], vmis: list[Vmi]) -> None:
        assert [attach("net-a", f"net{number}") for number in (4, 2, 3, 1)] == [vmis[n].mac for n in (4, 2, 3, 1)]

    def test_a_del_releases_only_its_interface(
        self, attach: Callable[..., str], vmis: list[Vmi], plugin: Plugin, pod: PodSandbox, agent: ScriptedAgent
    ) -> None:
        for ifname in ("net1", "net2"):
            attach("net-a", ifname)
        plugin.delete(pod, "net1", name="net-a").succeeded()
        assert set(agent.owners()) == {vmis[2].uuid}
        assert len(plugin.node.links()) == 1
        assert attach("net-a", "net1") == vmis[1].mac

    def test_a_retry_after_a_failure_gets_the_same(
        self, attach: Callable[..., str], vmis: list[Vmi], plugin: Plugin, pod: PodSandbox, agent: ScriptedAgent
    ) -> None:
        attach("net-a", "net1")
        agent.reject("POST")
        for _ in range(2):
            plugin.add(pod, "x2", name="net-a", settings={"nad": "demo/net-a"}).failed(101)
        agent.clear_behaviours()
        result = plugin.add(pod, "x2", name="net-a", settings={"nad": "demo/net-a"}).succeeded().document
        assert result["interfaces"][1]["mac"] == vmis[2].mac

    def test_a_second_add_of_an_attachment_is_rejected(
        self, attach: Callable[..., str], vmis: list[Vmi], plugin: Plugin, pod: PodSandbox, sandbox: Netns
    ) -> None:
        attach("net-a", "net1")
        assert "net1" in plugin.add(pod, "net1", name="net-a").failed(102)
        assert sandbox.links() == ["net1"]

    def test_host_and_sandbox_match_the_record(
        self, attach: Callable[..., str], vmis: list[Vmi], plugin: Plugin, pod: PodSandbox
    ) -> None:
        attach("net-a", "net2")
        record = plugin.record(pod, "net2")
        assert [each["uuid"] for each in record["interfaces"]] == [vmis[2].uuid]
        assert (record["thick"], record["finished"]) == (False, True)
        assert plugin.node.links() == [record["interfaces"][0]["plan"]["host_name"]]


class TestModes:
    def test_auto_decides_by_the_networks_name(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 3)
        for mode in ("auto", "k8s"):
            plugin.add(pod, settings={"mode": mode}).succeeded()
            assert sandbox.links() == ["eth0", "eth1", "eth2"]
            plugin.delete(pod).succeeded()
            plugin.add(pod, "net1", name="net-1", settings={"mode": mode}).succeeded()
            assert sandbox.links() == ["net1"]
            plugin.delete(pod, "net1", name="net-1").succeeded()

    def test_the_default_network_may_have_another_name(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod, name="k8s-pod", settings={"network-name": "k8s-pod"}).succeeded()
        assert sandbox.links() == ["eth0", "eth1"]

    def test_the_default_network_can_be_delegated(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod, settings={"mode": "delegated"}).succeeded()
        assert sandbox.links() == ["eth0"]

    def test_any_network_can_be_thick(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod, name="whatever", settings={"mode": "thick"}).succeeded()
        assert sandbox.links() == ["eth0", "eth1"]

    @pytest.mark.parametrize("first", ["thick", "delegated"])
    def test_one_container_is_either_thick_or_delegated(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, first: str
    ) -> None:
        serve_pod(agent, 2)
        second = {"thick": "delegated", "delegated": "thick"}[first]
        plugin.add(pod, "eth0", settings={"mode": first}).succeeded()
        message = plugin.add(pod, "net1", name="net-1", settings={"mode": second}).failed(7)
        assert first in message
        assert second in message
        assert "eth0" in message

    def test_one_container_is_thick_only_once(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod).succeeded()
        links = plugin.node.links()
        assert "eth0" in plugin.add(pod, "eth9").failed(7)
        assert plugin.node.links() == links


def test_an_interface_keeps_its_index_and_network_with_a_requested_name(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 2)
    agent.serve(pod.vm_name, [vmis[0], replace(vmis[1].annotated(interface="left"), mtu=1300)])
    result = plugin.add(pod, "net1", name="net-1").succeeded().document
    assert result["interfaces"][1] == {"name": "net1", "mac": vmis[1].mac, "sandbox": pod.netns}
