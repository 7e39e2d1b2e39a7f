"""`contrail-manager` on a Contrail API server: NADs and pods name networks that others made there."""

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from manager.parsing.network_reference import NETWORK_KEY
from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made, subnet
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.upstream_kube_manager import UpstreamKubeManager

OFFICE = "default-domain:office"


@pytest.fixture
async def network(caller: Caller) -> Made:
    office = await caller.create("project", fq_name=OFFICE.split(":"), parent_type="domain")
    return await caller.network(subnet("10.5.0.0/24"), project=office)


def reference(*fq_name: str) -> str:
    return json.dumps(dict(zip(("domain", "project", "name"), fq_name, strict=True)))


def add_referring_nad(objects: ClusterObjects, name: str, made: Made) -> None:
    """Creates a NAD that names a network."""
    objects.add_nad(name, cidr=None)
    objects.change_nad(name, {"metadata": {"annotations": {NETWORK_KEY: reference(*made.fq_name)}}})


def launch(stack: ExitStack, folder: Path, server: FakeApiServer, url: str, **store: object) -> ManagerProcess:
    folder.mkdir()
    settings = {"kind": "vnc", "url": url, "projects": [OFFICE], **store}
    manager = ManagerProcess(folder, plain_kubeconfig(folder, server.url), store=settings)
    stack.callback(lambda: manager.kill() if manager.is_running else None)
    manager.launch()
    return manager


async def lead(stack: ExitStack, folder: Path, server: FakeApiServer, url: str, **store: object) -> ManagerProcess:
    manager = launch(stack, folder, server, url, **store)
    await asyncio.to_thread(manager.wait_until_it_leads)
    return manager


async def await_state(manager: ManagerProcess, *states: str) -> None:
    await asyncio.to_thread(
        manager.wait_until, lambda: [each["state"] for each in manager.items("pods")] == list(states), what=str(states)
    )


def networks_of(contrail: ContrailApi, uid: str) -> set[str | None]:
    """Uuids of the networks in which a pod has interfaces."""
    interfaces = contrail.database.of_kind(KINDS["virtual-machine-interface"]).values()
    return {each.only("virtual-network") for each in interfaces if each.only("virtual-machine") == uid}


async def test_a_pod_is_in_a_network_that_a_nad_names_and_stays_over_a_restart(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    network: Made,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    add_referring_nad(objects, "office", network)
    uid = objects.add_pod("web-0", networks="office")
    first = await lead(killed_in_the_end, tmp_path / "first", server, contrail.url)
    await await_state(first, "Ready")
    assert network.uuid in networks_of(contrail, uid)
    assert await asyncio.to_thread(first.stop) == 0
    second = await lead(killed_in_the_end, tmp_path / "second", server, contrail.url)
    await await_state(second, "Ready")
    events = await asyncio.to_thread(second.items, "events")
    assert [each["message"] for each in events if each["type"] != "Normal"] == []


async def test_a_pod_has_a_network_of_others_at_index_0(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    network: Made,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    uid = objects.add_pod("web-0", annotations={NETWORK_KEY: reference(*network.fq_name)})
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url)
    await await_state(manager, "Ready")
    assert networks_of(contrail, uid) == {network.uuid}


async def test_a_pod_waits_for_a_network_of_a_project_that_is_not_listed(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    network: Made,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    add_referring_nad(objects, "office", network)
    objects.add_pod("web-0", networks="office")
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url, projects=[])
    await await_state(manager, "Waiting")
    (pod,) = manager.items("pods")
    assert pod["reason"] == "NetworkNotFound"


async def test_pods_get_a_network_that_somebody_makes_after_the_nad_names_it(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    caller: Caller,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    name = [*OFFICE.split(":"), "later"]
    office = await caller.create("project", fq_name=OFFICE.split(":"), parent_type="domain")
    ipam = await caller.create("network-ipam", fq_name=[*office.fq_name, "later-ipam"], parent_type="project")
    add_referring_nad(objects, "office", Made("virtual-network", "", name))
    uid = objects.add_pod("web-0", networks="office")
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url)
    await await_state(manager, "Waiting")
    link = {**ipam.reference, "attr": {"ipam_subnets": [subnet("10.6.0.0/24")]}}
    made = await caller.create("virtual-network", fq_name=name, parent_type="project", network_ipam_refs=[link])
    await await_state(manager, "Ready")
    assert made.uuid in networks_of(contrail, uid)


async def test_a_nad_names_the_network_of_an_isolated_namespace_while_that_is_taken_over(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    caller: Caller,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    """The namespace becomes isolated when the NAD has its network already."""
    upstream = UpstreamKubeManager(caller)
    await upstream.pod_network("10.32.0.0/12")
    made = await upstream.pod_network("10.32.0.0/12", namespace="teal")
    objects.add_namespace("teal")
    add_referring_nad(objects, "alias", made)
    uid = objects.add_pod("web-0", networks="alias")
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url, **{"take-over": True})
    await await_state(manager, "Ready")
    assert made.uuid in networks_of(contrail, uid)
    objects.annotate_namespace("teal", **{"opencontrail.org/isolation": "true"})
    own = objects.add_pod("own", namespace="teal")
    await await_state(manager, "Ready", "Ready")
    assert networks_of(contrail, own) == {made.uuid}


async def test_a_nad_names_the_network_of_another_one_while_that_is_taken_over(
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    caller: Caller,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    """Whichever of both is read first: `alias` comes before `left`."""
    made = await UpstreamKubeManager(caller).nad_network("left", "10.1.1.0/24", "10.1.1.254", namespace="blue")
    objects.add_nad("left", cidr="10.1.1.0/24")
    add_referring_nad(objects, "alias", made)
    uid = objects.add_pod("web-0", networks="alias,left")
    manager = await lead(killed_in_the_end, tmp_path / "manager", server, contrail.url, **{"take-over": True})
    await await_state(manager, "Ready")
    assert made.uuid in networks_of(contrail, uid)
    events = await asyncio.to_thread(manager.items, "events")
    assert [each["message"] for each in events if each["type"] != "Normal"] == []
