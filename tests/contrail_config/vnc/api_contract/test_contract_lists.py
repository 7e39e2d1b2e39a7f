"""Lists: fields, details, anchors, names, filters and pages."""

import pytest

from tests.support.contrail_callers import DOMAIN, Caller, Made, Object, annotations, subnet, unique


async def listed(api: Caller, kind: str, **query: str) -> list[str]:
    return [item["uuid"] for item in (await api.get(f"/{kind}s", **query))[f"{kind}s"]]


async def machines(api: Caller, count: int) -> list[Made]:
    return [await api.virtual_machine(annotations=annotations(number=str(number))) for number in range(count)]


async def test_a_list_shows_uuid_name_and_href(api: Caller) -> None:
    machine = await api.virtual_machine()
    (item,) = (await api.get("/virtual-machines", obj_uuids=machine.uuid))["virtual-machines"]
    assert item == {"uuid": machine.uuid, "fq_name": machine.fq_name, "href": f"{api.url}{machine.path}"}


async def test_fields_add_properties_references_and_the_parent(api: Caller) -> None:
    network = await api.network(mtu=1450)
    (item,) = (await api.get("/virtual-networks", obj_uuids=network.uuid, fields="mtu,network_ipam_refs,absent"))[
        "virtual-networks"
    ]
    assert {"mtu", "network_ipam_refs", "parent_type", "parent_uuid"} <= set(item)
    assert "id_perms" not in item


async def test_fields_add_back_references(api: Caller) -> None:
    machine = await api.virtual_machine()
    interface = await api.interface(await api.network(), machine)
    query = {"obj_uuids": machine.uuid, "fields": "virtual_machine_interface_back_refs"}
    (item,) = (await api.get("/virtual-machines", **query))["virtual-machines"]
    assert [ref["uuid"] for ref in item["virtual_machine_interface_back_refs"]] == [interface.uuid]


async def test_fields_of_one_object_may_be_back_references_too(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(a="1"))
    interface = await api.interface(await api.network(), machine)
    shown = await api.read(machine, fields="virtual_machine_interface_back_refs,virtual_router_back_refs")
    assert [ref["uuid"] for ref in shown["virtual_machine_interface_back_refs"]] == [interface.uuid]
    assert shown["fq_name"] == machine.fq_name
    assert "annotations" not in shown


@pytest.mark.parametrize(("value", "detailed"), [("true", True), ("True", True), ("1", False)])
async def test_details_are_wrapped_and_whole(api: Caller, value: str, detailed: bool) -> None:
    machine = await api.virtual_machine(server_type="container")
    (item,) = (await api.get("/virtual-machines", obj_uuids=machine.uuid, detail=value))["virtual-machines"]
    assert (item.get("virtual-machine", {}).get("server_type") == "container") == detailed


async def test_a_list_can_be_counted(api: Caller) -> None:
    uuids = ",".join(machine.uuid for machine in await machines(api, 3))
    assert await api.get("/virtual-machines", obj_uuids=uuids, count="true") == {"virtual-machines": {"count": 3}}


async def test_hrefs_can_be_excluded(api: Caller) -> None:
    machine = await api.virtual_machine()
    (item,) = (await api.get("/virtual-machines", obj_uuids=machine.uuid, exclude_hrefs="1"))["virtual-machines"]
    assert "href" not in item


async def test_anchors_limit_a_list_and_intersect(api: Caller) -> None:
    network, machine = await api.network(subnet("10.8.0.0/24")), await api.virtual_machine()
    interface, other = await api.interface(network, machine), await api.interface(network)
    kind = "virtual-machine-interface"
    assert set(await listed(api, kind, back_ref_id=network.uuid)) == {interface.uuid, other.uuid}
    assert await listed(api, kind, back_ref_id=machine.uuid) == [interface.uuid]
    assert await listed(api, kind, back_ref_id=network.uuid, obj_uuids=other.uuid) == [other.uuid]


async def test_children_are_listed_by_their_parent(api: Caller) -> None:
    project = await api.project()
    network = await api.network(project=project)
    assert await listed(api, "virtual-network", parent_id=project.uuid) == [network.uuid]
    name = ":".join(project.fq_name)
    assert await listed(api, "virtual-network", parent_fq_name_str=name, parent_type="project") == [network.uuid]
    assert await listed(api, "virtual-network", parent_fq_name_str=f"{DOMAIN}:{unique('no')}") == []


async def test_an_object_without_parent_type_is_not_listed_below_its_project(api: Caller) -> None:
    project = await api.project()
    ipam = await api.create("network-ipam", fq_name=[*project.fq_name, "ipam"])
    assert await listed(api, "network-ipam", parent_id=project.uuid) == []
    assert "parent_uuid" not in await api.read(ipam)


async def test_unknown_uuids_and_names_are_skipped(api: Caller) -> None:
    machine = await api.virtual_machine()
    unknown = "0a000000-0000-4000-8000-000000000001"
    assert await listed(api, "virtual-machine", obj_uuids=f"{unknown},{machine.uuid}") == [machine.uuid]
    assert await listed(api, "virtual-machine", fq_names=f"{unique('no')},{machine.fq_name[0]}") == [machine.uuid]


async def test_an_empty_anchor_lists_nothing(api: Caller) -> None:
    await api.virtual_machine()
    assert await listed(api, "virtual-machine", obj_uuids="") == []


async def test_scalar_properties_can_be_filtered(api: Caller) -> None:
    name = unique("shown")
    machine = await api.virtual_machine(display_name=name)
    assert await listed(api, "virtual-machine", filters=f'display_name=="{name}"') == [machine.uuid]


async def test_annotations_cannot_be_filtered(api: Caller) -> None:
    await api.virtual_machine(annotations=annotations(a="1"))
    assert await listed(api, "virtual-machine", filters='annotations=="1"') == []


async def test_a_filter_without_a_comparison_is_refused(api: Caller) -> None:
    answer = await api.request("GET", "/virtual-machines", query={"filters": "display_name"})
    assert answer.status == 400
    assert answer.text.startswith("Invalid filter ")


async def test_pages_follow_a_marker_until_it_is_null(api: Caller) -> None:
    made = {machine.uuid for machine in await machines(api, 5)}
    found: list[str] = []
    marker: str | None = ""
    while marker is not None:
        page = await api.get("/virtual-machines", page_marker=marker, page_limit="2")
        found += [item["uuid"] for item in page["virtual-machines"]]
        marker = page["marker"]
    assert made <= set(found)
    assert len(found) == len(set(found))


async def test_a_full_last_page_is_followed_by_an_empty_one(api: Caller) -> None:
    uuids = ",".join(machine.uuid for machine in await machines(api, 2))
    page = await api.get("/virtual-machines", obj_uuids=uuids, page_marker="", page_limit="2")
    assert page["marker"] is not None
    last = await api.get("/virtual-machines", obj_uuids=uuids, page_marker=page["marker"], page_limit="2")
    assert last == {"virtual-machines": [], "marker": None}


async def test_a_limit_without_a_marker_is_ignored(api: Caller) -> None:
    uuids = ",".join(machine.uuid for machine in await machines(api, 3))
    assert len(await listed(api, "virtual-machine", obj_uuids=uuids, page_limit="2")) == 3


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"page_marker": "", "page_limit": "0"}, "Invalid page_limit 0: "),
        ({"page_marker": "zz"}, "Invalid page_marker zz: "),
    ],
)
async def test_a_wrong_page_is_refused(api: Caller, query: dict[str, str], text: str) -> None:
    answer = await api.request("GET", "/virtual-machines", query=query)
    assert answer.status == 400
    assert answer.text.startswith(text)


async def test_a_bulk_list_takes_the_same_keys_as_a_body(api: Caller) -> None:
    uuids = [machine.uuid for machine in await machines(api, 40)]
    body = {"type": "virtual-machine", "obj_uuids": ",".join(uuids), "fields": "annotations", "exclude_hrefs": True}
    items = (await api.post("/list-bulk-collection", body)).json["virtual-machines"]
    assert {item["uuid"] for item in items} == set(uuids)
    assert all("annotations" in item and "href" not in item for item in items)


async def test_a_bulk_list_takes_its_pages_too(api: Caller) -> None:
    uuids = ",".join(machine.uuid for machine in await machines(api, 3))
    body: Object = {"type": "virtual-machine", "obj_uuids": uuids, "page_marker": "", "page_limit": "2"}
    page = (await api.post("/list-bulk-collection", body)).json
    assert len(page["virtual-machines"]) == 2
    assert page["marker"] is not None


async def test_a_bulk_list_takes_its_filter_too(api: Caller) -> None:
    """By the display name, which is the last element of the name unless it is set."""
    machine, _ = await machines(api, 2)
    body = {"type": "virtual-machine", "filters": f'display_name=="{machine.fq_name[-1]}"'}
    for paged in ({}, {"page_marker": "", "page_limit": "500"}):
        items = (await api.post("/list-bulk-collection", {**body, **paged})).json["virtual-machines"]
        assert [item["uuid"] for item in items] == [machine.uuid]


async def test_arrays_in_a_bulk_list_are_an_internal_error(api: Caller) -> None:
    machine = await api.virtual_machine()
    body = {"type": "virtual-machine", "obj_uuids": [machine.uuid]}
    assert (await api.post("/list-bulk-collection", body)).status == 500


async def test_names_in_a_bulk_list_are_ignored(api: Caller) -> None:
    first, second = await machines(api, 2)
    body = {"type": "virtual-machine", "fq_names": first.fq_name[0]}
    items = (await api.post("/list-bulk-collection", body)).json["virtual-machines"]
    assert {first.uuid, second.uuid} <= {item["uuid"] for item in items}
