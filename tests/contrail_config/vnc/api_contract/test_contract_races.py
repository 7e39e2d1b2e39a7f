"""Races: what several requests at once leave behind, on the double, which lets them meet between check and write."""

import asyncio
import uuid

import pytest

from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import DOMAIN, Caller, Made, annotations, statuses, subnet, unique


async def named(api: Caller, made: Made) -> int:
    return (await api.post("/fqname-to-id", {"type": made.kind, "fq_name": made.fq_name})).status


@pytest.mark.parametrize("kind", ["project", "network-ipam"])
async def test_a_project_or_ipam_without_uuid_is_created_once(racing: Caller, double: ContrailApi, kind: str) -> None:
    home = [DOMAIN] if kind == "project" else (await racing.project()).fq_name
    body = {"fq_name": [*home, unique("name")], "parent_type": "domain" if kind == "project" else "project"}
    double.pauses.race(8)
    assert await statuses(*(racing.try_create(kind, **body) for _ in range(8))) == [200, *[409] * 7]


async def test_a_name_without_uuid_is_created_once(racing: Caller, double: ContrailApi) -> None:
    name = [unique("vm")]
    double.pauses.race(20)
    answers = await asyncio.gather(*(racing.try_create("virtual-machine", fq_name=name) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [200, *[409] * 19]
    refused = next(answer.text for answer in answers if answer.status == 409)
    assert f"fq-name-to-uuid/virtual_machine:{name[0]} exists already with ID: " in refused
    assert refused.endswith("at zookeeper")


async def test_a_name_with_own_uuids_is_created_as_often_as_asked(racing: Caller, double: ContrailApi) -> None:
    name = [unique("vm")]
    double.pauses.race(20)
    creates = [racing.try_create("virtual-machine", fq_name=name, uuid=str(uuid.uuid4())) for _ in range(20)]
    assert await statuses(*creates) == [200] * 20
    first, *others = racing.made
    assert await named(racing, first) == 500
    assert (await racing.request("GET", "/virtual-machines", query={"fq_names": name[0]})).status == 500
    assert (await racing.try_create("virtual-machine", fq_name=name)).status == 500
    for other in others:
        await racing.delete(other)
    assert await named(racing, first) == 200


async def test_creates_of_one_uuid_are_merged(racing: Caller, double: ContrailApi) -> None:
    networks = [await racing.network(), await racing.network()]
    fq_name, wanted = [*networks[0].fq_name[:-1], unique("i")], str(uuid.uuid4())
    double.pauses.race(2)
    creates = [
        racing.try_create(
            "virtual-machine-interface",
            uuid=wanted,
            fq_name=fq_name,
            parent_type="project",
            virtual_network_refs=[network.reference],
            annotations=annotations(**{key: key}),
        )
        for network, key in zip(networks, "ab", strict=True)
    ]
    assert await statuses(*creates) == [200, 200]
    shown = await racing.read(racing.made[-1])
    assert {ref["uuid"] for ref in shown["virtual_network_refs"]} == {network.uuid for network in networks}
    assert shown["annotations"] == annotations(a="a", b="b")


async def test_each_name_of_one_uuid_resolves_to_it(racing: Caller, double: ContrailApi) -> None:
    wanted = str(uuid.uuid4())
    double.pauses.race(2)
    creates = [racing.try_create("virtual-machine", fq_name=[unique("vm")], uuid=wanted) for _ in range(2)]
    assert await statuses(*creates) == [200, 200]
    assert [await named(racing, made) for made in racing.made] == [200, 200]


async def test_automatic_addresses_of_one_uuid_are_lost(racing: Caller, double: ContrailApi) -> None:
    network = await racing.network(subnet("10.8.0.0/29"))
    body = {"fq_name": [unique("a")], "uuid": str(uuid.uuid4()), "virtual_network_refs": [network.reference]}
    double.pauses.race(4)
    assert await statuses(*(racing.try_create("instance-ip", **body) for _ in range(4))) == [200] * 4
    assert (await racing.try_address(network)).status == 400
    await racing.delete(racing.made[-1])
    assert (await racing.try_address(network)).status == 200
    assert (await racing.try_address(network)).status == 400


async def test_an_address_without_uuid_is_created_once_and_nothing_is_lost(racing: Caller, double: ContrailApi) -> None:
    network = await racing.network(subnet("10.8.0.0/29"))
    body = {"fq_name": [unique("a")], "virtual_network_refs": [network.reference]}
    double.pauses.race(4)
    assert await statuses(*(racing.try_create("instance-ip", **body) for _ in range(4))) == [200, 409, 409, 409]
    assert [(await racing.try_address(network)).status for _ in range(3)] == [200, 200, 200]


async def test_the_losers_of_a_requested_address_are_told_by_the_lock_service(
    racing: Caller, double: ContrailApi
) -> None:
    network = await racing.network(subnet("10.8.0.0/29"))
    double.pauses.race(3)
    answers = await asyncio.gather(*(racing.try_address(network, "10.8.0.5") for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [200, 400, 400]
    refused = next(answer.text for answer in answers if answer.status == 400)
    assert "exists already with ID: " in refused
    assert refused.endswith("at zookeeper")


async def test_a_machine_deleted_beside_its_new_interface_leaves_a_reference_to_nothing(
    racing: Caller, double: ContrailApi
) -> None:
    network, machine = await racing.network(), await racing.virtual_machine()
    double.pauses.race(2)
    interface, deleted = await asyncio.gather(racing.interface(network, machine), racing.delete(machine))
    assert deleted.status == 200
    (reference,) = (await racing.read(interface))["virtual_machine_refs"]
    assert (reference["to"], reference["uuid"]) == (["ERROR"], machine.uuid)
    assert (await racing.delete(interface)).status == 200


async def test_an_interface_deleted_beside_its_new_address_leaves_a_reference_to_nothing(
    racing: Caller, double: ContrailApi
) -> None:
    network = await racing.network(subnet("10.8.0.0/24"))
    interface = await racing.interface(network)
    links = [interface.reference]
    double.pauses.race(2)
    address, deleted = await asyncio.gather(
        racing.address(network, virtual_machine_interface_refs=links), racing.delete(interface)
    )
    assert deleted.status == 200
    (reference,) = (await racing.read(address))["virtual_machine_interface_refs"]
    assert (reference["to"], reference["uuid"]) == (["ERROR"], interface.uuid)
    assert (await racing.delete(address)).status == 200


async def test_deletes_of_one_object_at_once_all_succeed(racing: Caller, double: ContrailApi) -> None:
    machine = await racing.virtual_machine()
    double.pauses.race(20)
    assert await statuses(*(racing.delete(machine) for _ in range(20))) == [200] * 20


@pytest.mark.parametrize("own_uuid", [False, True])
async def test_a_name_that_is_deleted_and_created_at_once_belongs_to_one_object_or_to_none(
    racing: Caller, double: ContrailApi, *, own_uuid: bool
) -> None:
    machine = await racing.virtual_machine()
    more = {"uuid": machine.uuid} if own_uuid else {}
    deleted, created = await asyncio.gather(
        racing.delete(machine), racing.try_create("virtual-machine", fq_name=machine.fq_name, **more)
    )
    assert (deleted.status, created.status) in {(200, 200), (200, 409)}
    uuids = double.database.named("virtual-machine", tuple(machine.fq_name))
    assert uuids == ([created.json["virtual-machine"]["uuid"]] if created.status == 200 else [])


async def test_annotations_set_at_once_are_all_kept(racing: Caller, double: ContrailApi) -> None:
    machine = await racing.virtual_machine()
    keys = [f"key-{number:02}" for number in range(32)]
    bodies = [
        {
            "uuid": machine.uuid,
            "updates": [{"field": "annotations", "operation": "set", "value": {"key": key, "value": "x"}}],
        }
        for key in keys
    ]
    double.pauses.race(32)
    assert await statuses(*(racing.post("/prop-collection-update", body) for body in bodies)) == [200] * 32
    pairs = (await racing.read(machine))["annotations"]["key_value_pair"]
    assert [pair["key"] for pair in pairs] == keys


async def test_a_network_deleted_beside_its_new_address_leaves_one_that_cannot_be_deleted(
    racing: Caller, double: ContrailApi
) -> None:
    network = await racing.network(subnet("10.8.0.0/24"))
    double.pauses.race(2)
    address, deleted = await asyncio.gather(racing.address(network), racing.delete(network))
    assert deleted.status == 200
    answer = await racing.delete(address)
    assert (answer.status, answer.text) == (500, "Virtual Network(['ERROR']) not found")
    assert (await racing.put(address, annotations=annotations(a="1"))).status == 404
    again = await racing.create("virtual-network", uuid=network.uuid, fq_name=network.fq_name, parent_type="project")
    assert (await racing.delete(address)).status == 200
    assert (await racing.delete(again)).status == 200


async def test_references_added_at_once_are_all_kept(racing: Caller, double: ContrailApi) -> None:
    router = await racing.create(
        "virtual-router", fq_name=["default-global-system-config", "node-1"], parent_type="global-system-config"
    )
    machines = [await racing.virtual_machine() for _ in range(20)]
    double.pauses.race(20)
    assert await statuses(*(racing.refer(router, machine) for machine in machines)) == [200] * 20
    assert len((await racing.read(router))["virtual_machine_refs"]) == 20


async def test_a_name_is_not_resolved_before_its_create_is_finished(racing: Caller, double: ContrailApi) -> None:
    claimed, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        claimed.set()
        await go.wait()

    double.pauses.before_write = wait
    creating = asyncio.create_task(racing.virtual_machine(annotations=annotations(a="1")))
    await claimed.wait()
    (path,) = [path for path in double.database.claims if "fq-name-to-uuid" in path]
    name = path.rpartition(":")[2]
    answer = await racing.post("/fqname-to-id", {"type": "virtual-machine", "fq_name": [name]})
    assert answer.status == 404
    go.set()
    assert (await creating).fq_name == [name]
