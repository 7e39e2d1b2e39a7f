"""`contrail-manager` on a Contrail API server to which Contrail's kube-manager wrote: pods run on."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.contrail_sites import NETWORKS, NODE, POD_CIDR, Site
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.upstream_kube_manager import UpstreamKubeManager


def make_manager(stack: ExitStack, folder: Path, server: FakeApiServer, url: str, subnet: str) -> ManagerProcess:
    """Returns a manager that takes over."""
    folder.mkdir()
    store = {"kind": "vnc", "url": url, "take-over": True}
    kubeconfig = plain_kubeconfig(folder, server.url)
    manager = ManagerProcess(folder, kubeconfig, store=store, pod_network={"subnets": [subnet]})
    stack.callback(lambda: manager.kill() if manager.is_running else None)
    return manager


async def lead(stack: ExitStack, folder: Path, server: FakeApiServer, url: str) -> ManagerProcess:
    """Starts a manager that takes over, and returns it once it leads."""
    manager = make_manager(stack, folder, server, url, POD_CIDR)
    manager.launch()
    await asyncio.to_thread(manager.wait_until_it_leads)
    return manager


async def warnings_of(manager: ManagerProcess) -> list[str]:
    events = await asyncio.to_thread(manager.items, "events")
    return [event["message"] for event in events if event["type"] != "Normal"]


def content(double: ContrailApi) -> dict[str, Any]:
    """All objects of pods and networks by uuid: properties but annotations and times, and references."""
    kinds = ("virtual-machine", "virtual-machine-interface", "instance-ip", "virtual-network", "network-ipam")
    return {
        uuid: (
            stored.fq_name,
            {key: value for key, value in stored.properties.items() if key not in ("annotations", "id_perms")},
            {kind: dict(targets) for kind, targets in stored.references.items() if targets},
        )
        for kind in (*kinds, "virtual-router")
        for uuid, stored in double.database.of_kind(KINDS[kind]).items()
    }


async def test_a_running_pod_keeps_all_that_it_has(
    site: Site,
    server: FakeApiServer,
    contrail: ContrailApi,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    before = content(contrail)
    manager = await lead(killed_in_the_end, tmp_path / "first", server, contrail.url)
    assert content(contrail) == before
    assert not [request for request in contrail.requests if "/ref-update" in request][1:]  # the first is kube-manager's
    (listed,) = manager.items("pods")
    assert listed["state"] == "Ready"
    assert await warnings_of(manager) == []
    assert await asyncio.to_thread(manager.stop) == 0

    second = await lead(killed_in_the_end, tmp_path / "second", server, contrail.url)
    assert content(contrail) == before
    assert [each["state"] for each in second.items("pods")] == ["Ready"]
    assert await warnings_of(second) == []
    assert await asyncio.to_thread(second.stop) == 0
    assert " WARNING " not in second.log.read_text()


async def test_pods_come_and_go_in_networks_that_were_taken_over(
    site: Site,
    server: FakeApiServer,
    contrail: ContrailApi,
    objects: ClusterObjects,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url)
    uid = objects.add_pod("web-1", networks=NETWORKS, node=NODE)
    await await_ready(manager, 2)
    linked = {
        stored.only("virtual-network")
        for stored in contrail.database.of_kind(KINDS["virtual-machine-interface"]).values()
        if stored.only("virtual-machine") == uid
    }
    assert linked == {site.pod_network.uuid, site.left.uuid}
    claimed = contrail.database.of_kind(KINDS["instance-ip"]).values()
    addresses = [stored.properties["instance_ip_address"] for stored in claimed]
    assert len(set(addresses)) == 4

    objects.end_pod("web-0")
    objects.remove_pod("web-0")
    await asyncio.to_thread(
        manager.wait_until,
        lambda: set(contrail.database.of_kind(KINDS["virtual-machine"])) == {uid},
        what="deleting the pod that was taken over",
    )
    await asyncio.to_thread(
        manager.wait_until,
        lambda: len(contrail.database.of_kind(KINDS["virtual-machine-interface"])) == 2,
        what="deleting its interfaces",
    )
    assert site.pod_network.uuid in contrail.database.objects
    assert await asyncio.to_thread(manager.stop) == 0


async def test_a_pod_of_an_isolated_namespace_gets_an_address_that_nobody_has_in_the_pod_network(
    site: Site,
    server: FakeApiServer,
    contrail: ContrailApi,
    objects: ClusterObjects,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    """Its network has the gateway of the pod network, which kube-manager chose."""
    objects.add_namespace("teal", **{"opencontrail.org/isolation": "true"})
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url)
    uid = objects.add_pod("alone", node=NODE, namespace="teal")
    await await_ready(manager, 2)
    (served,) = [each for each in manager.items("interfaces") if each["namespace"] == "teal"]
    interfaces = contrail.database.of_kind(KINDS["virtual-machine-interface"]).values()
    (isolated,) = [each.only("virtual-network") for each in interfaces if each.only("virtual-machine") == uid]
    assert isolated != site.pod_network.uuid
    records = contrail.database.of_kind(KINDS["instance-ip"]).values()
    (address,) = [
        each.properties["instance_ip_address"] for each in records if each.only("virtual-network") == isolated
    ]
    assert address in str(served)
    holders = {each.only("virtual-network") for each in records if each.properties["instance_ip_address"] == address}
    assert holders == {isolated, site.pod_network.uuid}
    assert await asyncio.to_thread(manager.stop) == 0


async def test_an_isolated_namespace_keeps_the_network_that_kube_manager_made(
    site: Site,
    server: FakeApiServer,
    contrail: ContrailApi,
    caller: Caller,
    objects: ClusterObjects,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    objects.add_namespace("teal", **{"opencontrail.org/isolation": "true"})
    uid = objects.add_pod("old", node=NODE, namespace="teal")
    upstream = UpstreamKubeManager(caller)
    isolated = await upstream.pod_network(POD_CIDR, namespace="teal")
    await upstream.pod("old", [("default", isolated)], router=site.router, uid=uid, namespace="teal")
    before = content(contrail)
    first = await lead(killed_in_the_end, tmp_path / "first", server, contrail.url)
    assert content(contrail) == before
    objects.add_pod("new", node=NODE, namespace="teal")
    await await_ready(first, 3)
    assert isolated_pods(contrail, isolated) == 2
    assert await asyncio.to_thread(first.stop) == 0
    second = await lead(killed_in_the_end, tmp_path / "second", server, contrail.url)
    await await_ready(second, 3)
    assert await warnings_of(second) == []
    assert await asyncio.to_thread(second.stop) == 0
    assert " WARNING " not in second.log.read_text()


async def await_ready(manager: ManagerProcess, number: int) -> None:
    await asyncio.to_thread(
        manager.wait_until,
        lambda: [each["state"] for each in manager.items("pods")] == ["Ready"] * number,
        what=f"{number} ready pods",
    )


def isolated_pods(contrail: ContrailApi, network: Made) -> int:
    """Number of interfaces in a network, each of another pod and with an address of its own."""
    interfaces = contrail.database.of_kind(KINDS["virtual-machine-interface"]).values()
    found = [each for each in interfaces if each.only("virtual-network") == network.uuid]
    records = contrail.database.of_kind(KINDS["instance-ip"]).values()
    addresses = {
        each.properties["instance_ip_address"] for each in records if each.only("virtual-network") == network.uuid
    }
    assert len(addresses) == len(found) == len({each.only("virtual-machine") for each in found})
    return len(found)


async def test_a_static_pod_ends_the_manager_and_changes_nothing(
    site: Site,
    server: FakeApiServer,
    contrail: ContrailApi,
    caller: Caller,
    objects: ClusterObjects,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    """The manager knows it by another uuid, so it would delete what the pod has."""
    uid = objects.add_pod("static-0", node=NODE, annotations={"kubernetes.io/config.mirror": "a" * 32})
    upstream = UpstreamKubeManager(caller)
    await upstream.pod("static-0", [("default", site.pod_network)], router=site.router, uid=uid, namespace="blue")
    before = content(contrail)
    manager = make_manager(killed_in_the_end, tmp_path / "manager", server, contrail.url, POD_CIDR)
    manager.launch()
    assert await asyncio.to_thread(manager.ended) == 1
    assert "(k8s__blue__static-0: is a static pod)" in manager.log.read_text().splitlines()[-1]
    assert content(contrail) == before
    assert "machine" not in str(contrail.database.objects[site.pod.machine.uuid].properties["annotations"])


async def test_a_pod_network_of_other_subnets_ends_the_manager_and_changes_nothing(
    site: Site, server: FakeApiServer, contrail: ContrailApi, tmp_path: Path, killed_in_the_end: ExitStack
) -> None:
    before = content(contrail)
    manager = make_manager(killed_in_the_end, tmp_path / "manager", server, contrail.url, "10.64.0.0/24")
    manager.launch()
    assert await asyncio.to_thread(manager.ended) == 1
    assert "it has the subnets 10.32.0.0/24, not 10.64.0.0/24" in manager.log.read_text().splitlines()[-1]
    assert content(contrail) == before
