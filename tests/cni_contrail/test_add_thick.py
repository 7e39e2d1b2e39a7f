"""Thick mode: one ADD creates all interfaces of the pod as served by the agent."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, Subnet, Vmi


def addresses(sandbox: Netns, link: str) -> list[str]:
    """Returns the global addresses of a link as CIDRs."""
    [found] = json.loads(sandbox.ip("-json", "address", "show", "dev", link))
    return [f"{each['local']}/{each['prefixlen']}" for each in found["addr_info"] if each["scope"] == "global"]


def link(namespace: Netns, name: str) -> Any:
    """Returns the kernel's description of a link."""
    [found] = json.loads(namespace.ip("-json", "-details", "link", "show", "dev", name))
    return found


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_interfaces_are_created_in_index_order(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod, count: int
) -> None:
    vmis = serve_pod(agent, count)
    agent.serve(pod.vm_name, vmis[::-1])
    plugin.add(pod).succeeded()
    assert sandbox.links() == [f"eth{index}" for index in range(count)]
    for index, vmi in enumerate(vmis):
        assert addresses(sandbox, f"eth{index}") == [f"{each.address}/{each.prefix_length}" for each in vmi.subnets]
        found = link(sandbox, f"eth{index}")
        assert (found["address"], found["mtu"], found["operstate"]) == (vmi.mac, vmi.mtu, "UP")
    assert len(plugin.node.links()) == count


def test_the_result_contains_only_the_primary_interface(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 3)
    result = plugin.add(pod).succeeded().document
    assert [each["name"] for each in result["interfaces"]][1:] == ["eth0"]
    assert [each["address"] for each in result["ips"]] == ["10.1.0.5/24", "fd00:1:1::5/64"]
    assert result["interfaces"][1]["mac"] == vmis[0].mac


def test_host_ends_are_up_and_have_an_alias(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 2)
    result = plugin.add(pod).succeeded().document
    names = plugin.node.links()
    assert names[0] == result["interfaces"][0]["name"]
    for name, vmi in zip(names, vmis, strict=True):
        found = link(plugin.node, name)
        assert name.startswith("tap")
        assert len(name) == 15
        assert found["ifalias"] == f"contrail {pod.container[:12]} demo/web-0 {vmi.uuid}"
        assert (found["operstate"], found["mtu"]) == ("UP", vmi.mtu)


def test_all_ports_are_plugged_in_one_request(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 3)
    plugin.add(pod).succeeded()
    [posted] = agent.received("POST")
    for number, (port, vmi, host_name) in enumerate(zip(posted.body, vmis, plugin.node.links(), strict=True)):
        assert port.pop("time")
        assert port == {
            "vm-id": pod.container,
            "vm-uuid": pod.uid,
            "vm-name": "k8s__demo__web-0",
            "host-ifname": host_name,
            "vm-ifname": f"eth{number}",
            "vm-namespace": pod.netns,
            "vn-uuid": vmi.network,
            "vmi-uuid": vmi.uuid,
        }


def test_the_list_is_requested_by_name_and_uid(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    plugin.add(pod).succeeded()
    [asked] = agent.received("GET")
    assert asked.path == "/vm-cfg/k8s__demo__web-0"
    assert asked.query["uid"] == pod.uid
    assert float(asked.query["wait"]) <= 1


def test_the_last_of_two_equal_arguments_counts(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    arguments = f"IgnoreUnknown=true;K8S_POD_NAME=other;K8S_POD_UID=other;{pod.args};;X=a=b; ;"
    environment = plugin.environment("ADD", pod, CNI_ARGS=arguments)
    plugin.call(environment, json.dumps(plugin.config())).succeeded()


def test_without_a_pod_the_container_id_is_its_name(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent)
    agent.serve(f"k8s__default__{pod.container}", vmis)
    agent.serve("k8s__default__box", vmis)
    for arguments in ("", "IgnoreUnknown=1;K8S_POD_NAME=box", "K8S_POD_NAME=;K8S_POD_NAMESPACE="):
        environment = plugin.environment("ADD", pod, CNI_ARGS=arguments)
        plugin.call(environment, json.dumps(plugin.config())).succeeded()
        plugin.delete(pod).succeeded()
    assert "uid" not in agent.received("GET")[0].query
    assert [seen.path.split("__")[-1] for seen in agent.received("GET")] == [pod.container, "box", pod.container]


@pytest.mark.parametrize(
    ("key", "value"), [("K8S_POD_NAME", "a/../b"), ("K8S_POD_NAMESPACE", ".."), ("K8S_POD_UID", "a?b")]
)
def test_invalid_characters_in_names_are_rejected(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, key: str, value: str
) -> None:
    environment = plugin.environment("ADD", pod, CNI_ARGS=f"{pod.args};{key}={value}")
    assert key in plugin.call(environment, json.dumps(plugin.config())).failed(4)
    assert agent.requests == []
    environment = {**environment, "CNI_COMMAND": "DEL"}
    plugin.call(environment, json.dumps(plugin.config())).succeeded()


@pytest.mark.parametrize("element", ["K8S_POD_NAMESPACE", " MAC "])
def test_an_argument_without_a_value_is_rejected_except_by_del(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, element: str
) -> None:
    serve_pod(agent)
    arguments, config = f"{element};{pod.args}", json.dumps(plugin.config())
    for command in ("ADD", "CHECK"):
        message = plugin.call(plugin.environment(command, pod, CNI_ARGS=arguments), config).failed(4)
        assert message == f"CNI_ARGS must be K=V;K=V {element.strip()} has no ="
    assert agent.requests == []
    plugin.add(pod).succeeded()
    done = plugin.call(plugin.environment("DEL", pod, CNI_ARGS=arguments), config).succeeded()
    assert "pod=demo/web-0" in done.stderr
    assert (plugin.node.links(), agent.ports) == ([], {})


def test_routes_of_the_network_are_created_and_in_the_result(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    routes = (
        {"dst": "10.9.0.0/16", "gw": "10.1.0.9"},
        {"dst": "fd99::/64", "gw": "fd00:1:1::9"},
        {"dst": "10.8.0.0/16"},
    )
    serve_pod(agent, change=lambda vmi: replace(vmi, routes=routes))
    result = plugin.add(pod).succeeded().document
    assert result["routes"][:3] == list(routes)
    assert "10.9.0.0/16 via 10.1.0.9 dev eth0" in sandbox.ip("route")
    assert "10.8.0.0/16 dev eth0" in sandbox.ip("route")
    assert "fd99::/64 via fd00:1:1::9 dev eth0" in sandbox.ip("-6", "route")


@pytest.mark.parametrize("family", [4, 6])
def test_one_family_is_enough(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod, family: int
) -> None:
    def keep(vmi: Vmi) -> Vmi:
        return replace(vmi, subnets=tuple(each for each in vmi.subnets if (":" in each.address) == (family == 6)))

    serve_pod(agent, 2, change=keep)
    result = plugin.add(pod).succeeded().document
    assert [":" in each["address"] for each in result["ips"]] == [family == 6]
    assert [":" in each for each in addresses(sandbox, "eth1")] == [family == 6]


def test_an_ipv6_address_is_usable_at_once(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    plugin.add(pod).succeeded()
    assert "tentative" not in sandbox.ip("-6", "address", "show", "scope", "global")


def test_the_mtu_setting_applies_if_the_agent_serves_none(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    plugin.add(pod, settings={"mtu": 9000}).succeeded()
    assert link(sandbox, "eth0")["mtu"] == 1400


def test_the_agent_can_be_reached_over_tcp(
    agent: ScriptedAgent, plugin: Plugin, node: Netns, pod: PodSandbox, serve_pod: ServePod
) -> None:
    """Through a relay in the node's namespace, so that the plugin reaches the agent at 127.0.0.1."""
    import socket
    import threading

    serve_pod(agent)
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with node.inside():
            listener = socket.create_server((host, 0), family=family)

        def relay(listener: socket.socket = listener) -> None:
            for _ in range(3):  # the list, the POST, the DELETE
                client, _peer = listener.accept()
                with client, socket.socket(socket.AF_UNIX) as upstream:
                    upstream.connect(agent.socket_path)
                    upstream.sendall(client.recv(65536))
                    while data := upstream.recv(65536):
                        client.sendall(data)

        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        settings = {"agent-socket": "", "vrouter-ip": host, "vrouter-port": listener.getsockname()[1]}
        plugin.add(pod, settings=settings).succeeded()
        plugin.delete(pod, settings=settings).succeeded()
        thread.join(10)
        listener.close()


def test_two_pods_of_one_node_do_not_conflict(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns], serve_pod: ServePod, pod: PodSandbox
) -> None:
    from tests.support.scripted_agents import make_vmis

    other = PodSandbox(make_netns("pod").path, name="web-1")
    serve_pod(agent, 2)
    agent.serve(other.vm_name, make_vmis(2, uid=other.uid, subnet=2))
    plugin.add(pod).succeeded()
    plugin.add(other).succeeded()
    assert len(set(plugin.node.links())) == 4
    plugin.delete(pod).succeeded()
    assert len(plugin.node.links()) == 2
    assert set(agent.owners().values()) == {other.container}


def test_an_address_without_a_gateway_has_none_in_the_result(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent, change=lambda vmi: replace(vmi, subnets=(Subnet("10.1.0.5", 24),)))
    result = plugin.add(pod).succeeded().document
    assert result["ips"] == [{"interface": 1, "address": "10.1.0.5/24"}]
    assert "routes" not in result
