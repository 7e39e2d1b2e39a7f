"""What the manager of a single machine knows of its own agent: the ports of pods, and the report of the node."""

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.served_agent import port_of


def test_ports_are_those_of_the_agent_with_their_conditions(node: EmbeddedProcess) -> None:
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"), pod("other"))
    node.start()
    node.wait_until(lambda: len(node.items("interfaces")) == 3, what="assigning interfaces")
    interface = node.items("interfaces", "?name=web")[1]
    plugged = port_of(
        interface["podUid"],
        interface["interface"]["uuid"],
        host_ifname="tap1",
        vm_id="a" * 64,
        vm_name="k8s__demo__web",
    )
    assert node.post("/vm", [plugged]) == 200
    found = node.items("ports")
    assert [(each["pod"], each["index"], each["name"]) for each in found] == [
        ("other", 0, "eth0"),
        ("web", 0, "eth0"),
        ("web", 1, "eth1"),
    ]
    web = node.items("ports", "?namespace=demo&name=web")
    assert web == found[1:]
    assert (web[0]["condition"], web[1]["condition"]) == ("NotPlugged", "Unknown")
    assert "link" not in web[0]
    assert (web[1]["link"], web[1]["container"]) == ("tap1", "a" * 64)
    assert web[1]["reason"] == "the agent runs without a datapath"


def test_the_node_reports_as_one_of_a_cluster(node: EmbeddedProcess) -> None:
    write(node.manifests / "all.yaml", pod("web"))
    node.start()
    node.wait_until(lambda: bool(node.items("nodes")), what="reporting")
    (found,) = node.items("nodes")
    report = found["report"]
    assert report["versions"]["agent"]
    assert report["datapath"] == "none"
    assert report["pendingDeletes"] == 0
    uid, interface = "12345678-0000-4000-8000-000000000001", "12345678-0000-4000-8000-000000000002"
    assert node.post("/vm", [port_of(uid, interface, vm_name="k8s__demo__gone")]) == 200
    node.wait_until(
        lambda: node.items("nodes")[0]["report"]["pendingDeletes"] == 1, what="reporting a port without its pod"
    )
