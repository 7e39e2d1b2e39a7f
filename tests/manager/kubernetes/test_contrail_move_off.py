"""Moving off a Contrail controller and back: each manager's pods are deleted before the next one has another store."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_sites import NETWORKS, NODE, POD_CIDR, Site
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import stored_virtual_machines

PODS = ("virtual-machine", "virtual-machine-interface", "instance-ip")


def counted(contrail: ContrailApi) -> list[int]:
    return [len(contrail.database.of_kind(KINDS[kind])) for kind in PODS]


def held(contrail: ContrailApi) -> list[str]:
    """Addresses that nobody frees once the manager is stopped."""
    stored = contrail.database.of_kind(KINDS["instance-ip"]).values()
    return [str(each.properties["instance_ip_address"]) for each in stored if "held-until" in str(each.properties)]


async def test_pods_are_whole_on_each_store_in_turn(
    site: Site,
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    async def lead(folder: str, **store: Any) -> ManagerProcess:
        work = tmp_path / folder
        work.mkdir()
        kubeconfig = plain_kubeconfig(work, server.url)
        manager = ManagerProcess(work, kubeconfig, store=store, pod_network={"subnets": [POD_CIDR]})
        killed_in_the_end.callback(lambda: manager.kill() if manager.is_running else None)
        manager.launch()
        await asyncio.to_thread(manager.wait_until_it_leads)
        return manager

    async def stop(manager: ManagerProcess) -> None:
        assert await asyncio.to_thread(manager.stop) == 0
        assert "Traceback" not in manager.log.read_text()

    networks = set(contrail.database.of_kind(KINDS["virtual-network"]))
    first = await lead("taken over", kind="vnc", url=contrail.url, **{"take-over": True})
    assert counted(contrail) == [1, 2, 2]
    objects.remove_pod("web-0")
    await eventually(lambda: counted(contrail) == [0, 0, 2])
    await stop(first)
    assert len(held(contrail)) == 2

    uid = objects.add_pod("web-0", networks=NETWORKS, node=NODE)
    second = await lead("moved off", kind="kubernetes")
    (machine,) = stored_virtual_machines(server).values()
    assert (machine.uuid, len(machine.interfaces)) == (uid, 2)
    objects.remove_pod("web-0")
    await eventually(lambda: not stored_virtual_machines(server))
    await stop(second)
    assert counted(contrail) == [0, 0, 2]  # untouched
    assert set(contrail.database.of_kind(KINDS["virtual-network"])) == networks

    uid = objects.add_pod("web-0", networks=NETWORKS, node=NODE)
    back = await lead("back", kind="vnc", url=contrail.url)
    assert counted(contrail) == [1, 2, 4]
    assert list(contrail.database.of_kind(KINDS["virtual-machine"])) == [uid]
    assert list(contrail.database.objects[site.router.uuid].references["virtual-machine"]) == [uid]
    assert set(contrail.database.of_kind(KINDS["virtual-network"])) == networks
    await stop(back)
