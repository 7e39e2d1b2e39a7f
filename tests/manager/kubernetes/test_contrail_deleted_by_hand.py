"""`contrail-manager` on a Contrail API server where somebody deletes its objects: they are written again."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.upstream_kube_manager import UpstreamKubeManager

NODE = "node-1"


@pytest.fixture
async def router(caller: Caller) -> Made:
    name = ["default-global-system-config", NODE]
    return await caller.create("virtual-router", fq_name=name, parent_type="global-system-config")


@pytest.fixture
async def manager(
    server: FakeApiServer, contrail: ContrailApi, tmp_path: Path, killed_in_the_end: ExitStack
) -> ManagerProcess:
    """Not started."""
    store = {"kind": "vnc", "url": contrail.url}
    manager = ManagerProcess(tmp_path, plain_kubeconfig(tmp_path, server.url), store=store)
    killed_in_the_end.callback(lambda: manager.kill() if manager.is_running else None)
    return manager


async def lead(manager: ManagerProcess) -> None:
    manager.launch()
    await asyncio.to_thread(manager.wait_until_it_leads)


def described(contrail: ContrailApi, *kinds: str) -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    """Names and properties of all objects by uuid, without what the server adds at each write."""
    return {
        uuid: (stored.fq_name, {key: value for key, value in stored.properties.items() if key != "id_perms"})
        for kind in kinds
        for uuid, stored in contrail.database.of_kind(KINDS[kind]).items()
    }


async def test_a_pod_is_whole_again(
    manager: ManagerProcess, objects: ClusterObjects, contrail: ContrailApi, caller: Caller, router: Made
) -> None:
    objects.add_nad("left", cidr="10.1.0.0/24")
    uid = objects.add_pod("web-0", networks="left", node=NODE)
    await lead(manager)
    kinds = ("virtual-machine", "virtual-machine-interface")
    before = described(contrail, *kinds)
    assert len(before) == 3
    assert set(await UpstreamKubeManager(caller).delete_pod(uid)) == {200}

    def is_whole() -> bool:
        linked = list(contrail.database.objects[router.uuid].references.get("virtual-machine", ()))
        return linked == [uid] and described(contrail, *kinds) == before

    await asyncio.to_thread(manager.wait_until, is_whole, what="writing the pod again")
    addresses = contrail.database.of_kind(KINDS["instance-ip"]).values()
    owners = [each.only("virtual-machine-interface") for each in addresses]
    assert sorted(map(str, owners)) == sorted(contrail.database.of_kind(KINDS["virtual-machine-interface"]))
    assert await asyncio.to_thread(manager.stop) == 0
    assert "Traceback" not in manager.log.read_text()


async def test_a_network_is_there_again(
    manager: ManagerProcess, objects: ClusterObjects, contrail: ContrailApi, caller: Caller
) -> None:
    objects.add_nad("left", cidr="10.1.0.0/24")
    await lead(manager)
    await asyncio.to_thread(manager.wait_until, lambda: len(manager.items("networks")) == 2, what="two networks")
    before = described(contrail, "virtual-network")
    (uuid,) = (uuid for uuid, (name, _) in before.items() if name[-1] == "k8s-left-pod-network")
    assert (await caller.delete(Made("virtual-network", uuid, []))).status == 200
    await asyncio.to_thread(
        manager.wait_until, lambda: described(contrail, "virtual-network") == before, what="writing the network again"
    )
    assert await asyncio.to_thread(manager.stop) == 0
    assert "Traceback" not in manager.log.read_text()
