"""VncStore: what a pod costs, and in which order it is written."""

import pytest

from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_api.stored import Stored
from tests.support.contrail_callers import Caller, Made
from tests.support.virtual_networks import make_network, start_pod

MACHINE = "virtual-machine"
INTERFACE = "virtual-machine-interface"


def stored(double: ContrailApi, kind: str) -> list[Stored]:
    return list(double.database.of_kind(KINDS[kind]).values())


async def test_a_pod_of_three_interfaces_takes_at_most_thirteen_requests(
    vnc_store: VncStore, double: ContrailApi, router: Made
) -> None:
    network = await vnc_store.put_network(make_network())
    await start_pod(vnc_store, [network], "first")  # the project is known then, and the router
    double.requests.clear()
    await start_pod(vnc_store, [network] * 3, "second")
    assert len(double.requests) <= 13, double.requests


async def test_the_router_refers_to_a_pod_after_everything_but_the_marker(
    vnc_store: VncStore, double: ContrailApi, router: Made
) -> None:
    network = await vnc_store.put_network(make_network())
    seen: list[tuple[int, int, bool]] = []

    def note(_request: str) -> None:
        if double.database.objects[router.uuid].only("virtual-machine") is None:
            return
        linked = [one for one in stored(double, "instance-ip") if one.only(INTERFACE)]
        markers = [annotations.from_object(one.properties).get(annotations.MACHINE) for one in stored(double, MACHINE)]
        seen.append((len(stored(double, INTERFACE)), len(linked), None not in markers))

    double.faults.after_write = note
    await start_pod(vnc_store, [network] * 3)
    assert seen == [(3, 3, False), (3, 3, True)]


async def test_others_find_a_pod_as_upstreams_manager_writes_it(
    vnc_store: VncStore, caller: Caller, router: Made
) -> None:
    network = await vnc_store.put_network(make_network())
    machine = await start_pod(vnc_store, [network] * 2)
    (shown,) = (await caller.get("/virtual-routers", fields="virtual_machine_refs"))["virtual-routers"]
    assert [reference["to"] for reference in shown["virtual_machine_refs"]] == [[machine.name]]
    query = {"back_ref_id": machine.uuid, "fields": "annotations,instance_ip_back_refs"}
    interfaces = (await caller.get("/virtual-machine-interfaces", **query))["virtual-machine-interfaces"]
    assert sorted(annotations.from_object(item)["index"] for item in interfaces) == ["0/2", "1/2"]
    assert all(len(item["instance_ip_back_refs"]) == 1 for item in interfaces)


@pytest.mark.parametrize("count", [1, 3])
async def test_the_interfaces_of_a_pod_agree_on_their_number_after_it_changed(
    vnc_store: VncStore, double: ContrailApi, router: Made, count: int
) -> None:
    network = await vnc_store.put_network(make_network())
    before = await start_pod(vnc_store, [network] * 2)
    machine = await start_pod(vnc_store, [network] * count, uid=before.uuid)
    pairs = [annotations.from_object(each.properties) for each in stored(double, INTERFACE)]
    assert sorted(each["index"] for each in pairs) == [f"{index}/{count}" for index in range(count)]
    linked = [each.only(INTERFACE) for each in stored(double, "instance-ip")]
    assert {interface.uuid for interface in machine.interfaces} <= set(linked)
    assert double.database.objects[router.uuid].only(MACHINE) == machine.uuid
