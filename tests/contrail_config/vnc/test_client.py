"""VncClient: verbs and actions."""

import pytest

from contrail_config.vnc.client import PAGE_LENGTH, VncClient
from contrail_config.vnc.errors import VncExistsError, VncInUseError, VncNotFoundError, VncServerError
from contrail_config.vnc.reference import Reference
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, annotations, statuses

MACHINE = "virtual-machine"


async def test_an_object_is_created_read_changed_and_deleted(vnc: VncClient) -> None:
    uuid = await vnc.create(MACHINE, {"fq_name": ["a"], "annotations": annotations(x="1")})
    assert (await vnc.read(MACHINE, uuid, fields=["annotations"]))["annotations"] == annotations(x="1")
    await vnc.update(MACHINE, uuid, {"display_name": "b"})
    assert (await vnc.read(MACHINE, uuid, fields=["display_name"]))["display_name"] == "b"
    await vnc.delete(MACHINE, uuid)
    with pytest.raises(VncNotFoundError, match=f"GET /virtual-machine/{uuid}: 404 Unknown id: {uuid}"):
        await vnc.read(MACHINE, uuid, fields=["annotations"])


async def test_deleting_a_missing_object_is_no_error(vnc: VncClient) -> None:
    await vnc.delete(MACHINE, "0a000000-0000-4000-8000-000000000001")


async def test_a_name_that_exists_is_a_conflict(vnc: VncClient) -> None:
    await vnc.create(MACHINE, {"fq_name": ["a"]})
    with pytest.raises(VncExistsError, match="already exists with uuid"):
        await vnc.create(MACHINE, {"fq_name": ["a"]})


async def test_annotations_are_set_and_removed(vnc: VncClient) -> None:
    uuid = await vnc.create(MACHINE, {"fq_name": ["a"], "annotations": annotations(x="1", y="2")})
    await vnc.set_annotations(uuid, {"z": "3"}, removed=["x"])
    assert (await vnc.read(MACHINE, uuid, fields=["annotations"]))["annotations"] == annotations(y="2", z="3")


async def test_references_are_added_and_removed(vnc: VncClient, caller: Caller) -> None:
    interface = await caller.interface(await caller.network())
    target = Reference(MACHINE, await vnc.create(MACHINE, {"fq_name": ["a"]}), ("a",))
    await vnc.add_reference(interface.kind, interface.uuid, target)
    with pytest.raises(VncInUseError):
        await vnc.delete(MACHINE, target.uuid)
    assert [item["uuid"] for item in await vnc.list_referring(interface.kind, [target.uuid], fields=["mtu"])] == [
        interface.uuid
    ]
    await vnc.remove_reference(interface.kind, interface.uuid, target)
    await vnc.delete(MACHINE, target.uuid)


async def test_a_name_is_resolved(vnc: VncClient) -> None:
    uuid = await vnc.create(MACHINE, {"fq_name": ["a"]})
    assert await vnc.find_uuid(MACHINE, ["a"]) == uuid
    with pytest.raises(VncNotFoundError):
        await vnc.find_uuid(MACHINE, ["b"])


async def test_a_name_of_several_uuids_is_an_error_of_the_server(
    vnc: VncClient, caller: Caller, double: ContrailApi
) -> None:
    double.pauses.race(2)
    uuids = [f"0a000000-0000-4000-8000-00000000000{digit}" for digit in "12"]
    assert await statuses(*(caller.try_create(MACHINE, fq_name=["a"], uuid=uuid) for uuid in uuids)) == [200, 200]
    with pytest.raises(VncServerError):
        await vnc.find_uuid(MACHINE, ["a"])


async def test_a_list_reads_all_pages(vnc: VncClient, double: ContrailApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrail_config.vnc.client.PAGE_LENGTH", 2)
    uuids = {await vnc.create(MACHINE, {"fq_name": [name]}) for name in "abcd"}
    double.requests.clear()
    found = await vnc.list_all(MACHINE, fields=["annotations"])
    assert {item["uuid"] for item in found} == uuids
    assert len(double.requests) == 3
    assert PAGE_LENGTH <= 500


async def test_a_list_of_no_uuids_is_empty_without_a_request(vnc: VncClient, double: ContrailApi) -> None:
    await vnc.create(MACHINE, {"fq_name": ["a"]})
    double.requests.clear()
    assert await vnc.list_by_uuid(MACHINE, [], fields=["annotations"]) == []
    assert await vnc.list_referring(MACHINE, [], fields=["annotations"]) == []
    assert double.requests == []


async def test_many_uuids_are_listed_with_one_request(vnc: VncClient, double: ContrailApi) -> None:
    uuids = [await vnc.create(MACHINE, {"fq_name": [f"m{number}"]}) for number in range(40)]
    double.requests.clear()
    assert {item["uuid"] for item in await vnc.list_by_uuid(MACHINE, uuids, fields=["annotations"])} == set(uuids)
    assert double.requests == ["POST /list-bulk-collection"]


@pytest.mark.parametrize("there", [True, False])
async def test_the_server_says_whether_it_can_be_watched(vnc: VncClient, double: ContrailApi, there: bool) -> None:
    double.has_watch = there
    assert await vnc.has_watch() == there
