"""Names and uuids of new objects: which are accepted, unique and immutable."""

import uuid

import pytest

from tests.support.contrail_callers import DOMAIN, Caller, unique


async def test_a_create_without_uuid_gets_one(api: Caller) -> None:
    machine = await api.create("virtual-machine", fq_name=[unique("vm")], uuid=None)
    assert uuid.UUID(machine.uuid).version == 4


async def test_a_create_keeps_the_uuid_that_it_brings(api: Caller) -> None:
    wanted = str(uuid.uuid5(uuid.NAMESPACE_DNS, unique("vm")))
    assert (await api.virtual_machine(uuid=wanted)).uuid == wanted


@pytest.mark.parametrize("form", ["upper", "bare"])
async def test_a_uuid_in_another_form_is_rejected(api: Caller, form: str) -> None:
    text = str(uuid.uuid4()).upper() if form == "upper" else uuid.uuid4().hex
    answer = await api.try_create("virtual-machine", fq_name=[unique("vm")], uuid=text)
    assert (answer.status, answer.text) == (400, f"Invalid UUID format: {text}")


async def test_a_text_that_is_no_uuid_is_an_internal_error(api: Caller) -> None:
    answer = await api.try_create("virtual-machine", fq_name=[unique("vm")], uuid="zz")
    assert answer.status == 500


async def test_a_uuid_belongs_to_one_object_over_all_types(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.try_create(
        "project", fq_name=[DOMAIN, unique("project")], parent_type="domain", uuid=machine.uuid
    )
    assert (answer.status, answer.text) == (409, f"{machine.uuid} already exists with fq_name: {machine.fq_name}")


@pytest.mark.parametrize("given", [None, str(uuid.uuid4())], ids=["without uuid", "with uuid"])
async def test_a_name_belongs_to_one_object_of_a_type(api: Caller, given: str | None) -> None:
    machine = await api.virtual_machine()
    answer = await api.try_create("virtual-machine", fq_name=machine.fq_name, uuid=given)
    assert (answer.status, answer.text) == (409, f"{machine.fq_name} already exists with uuid: {machine.uuid}")


async def test_a_deleted_name_and_uuid_can_be_used_again(api: Caller) -> None:
    machine = await api.virtual_machine()
    await api.delete(machine)
    assert (await api.create("virtual-machine", fq_name=machine.fq_name, uuid=machine.uuid)).uuid == machine.uuid


@pytest.mark.parametrize("name", ['with "quotes"', "a/b", "ä ö", "a,b", "x" * 300])
async def test_a_name_may_have_any_character_but_a_colon(api: Caller, name: str) -> None:
    made = await api.create("virtual-machine", fq_name=[unique(name)])
    assert (await api.read(made))["fq_name"] == made.fq_name


async def test_a_name_with_a_colon_is_rejected(api: Caller) -> None:
    answer = await api.try_create("virtual-machine", fq_name=["a:b"])
    assert (answer.status, answer.text) == (400, "Bad Request, name has one of invalid chars {':'}")


async def test_a_type_without_parent_has_names_of_one_element(api: Caller) -> None:
    answer = await api.try_create("virtual-machine", fq_name=["a", "b"])
    assert (answer.status, answer.text) == (400, "Invalid fq-name of an object with no parent: ['a', 'b']")


async def test_a_create_without_name_is_rejected(api: Caller) -> None:
    answer = await api.try_create("virtual-machine", display_name="x")
    assert (answer.status, answer.text) == (400, "Bad Request, no fq_name in POST body")


async def test_name_and_uuid_never_change(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.put(machine, fq_name=[unique("other")], uuid=str(uuid.uuid4()))
    assert answer.status == 200
    assert (await api.read(machine))["fq_name"] == machine.fq_name


async def test_the_reply_to_a_create_has_the_parent_only_with_its_type(api: Caller) -> None:
    name = [DOMAIN, unique("project")]
    answer = await api.try_create("project", fq_name=name, parent_type="domain")
    assert set(answer.json["project"]) == {
        "name",
        "fq_name",
        "uuid",
        "href",
        "parent_type",
        "parent_uuid",
        "parent_href",
    }
    answer = await api.try_create("project", fq_name=[DOMAIN, unique("project")])
    assert set(answer.json["project"]) == {"name", "fq_name", "uuid", "href"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("domain", ["default-domain"]),
        ("project", ["default-domain", "default-project"]),
        ("network-ipam", ["default-domain", "default-project", "default-network-ipam"]),
        ("global-system-config", ["default-global-system-config"]),
    ],
)
async def test_what_a_server_has_from_its_start_is_found_by_name(api: Caller, kind: str, name: list[str]) -> None:
    assert (await api.post("/fqname-to-id", {"type": kind, "fq_name": name})).status == 200


async def test_the_networks_of_the_server_have_the_first_numbers(api: Caller) -> None:
    names = ["default-virtual-network", "ip-fabric", "__link_local__", "dci-network"]
    found = [["default-domain", "default-project", name] for name in names]
    query = {"fq_names": ",".join(":".join(name) for name in found), "fields": "virtual_network_network_id"}
    items = (await api.get("/virtual-networks", **query))["virtual-networks"]
    assert sorted(item["virtual_network_network_id"] for item in items) == [1, 2, 3, 4]


async def test_a_missing_project_is_not_found(api: Caller) -> None:
    missing = [DOMAIN, unique("missing")]
    answer = await api.try_create("network-ipam", fq_name=[*missing, "ipam"], parent_type="project")
    assert (answer.status, answer.text) == (404, f"Name{missing} not found")


async def test_a_missing_domain_is_a_bad_request(api: Caller) -> None:
    answer = await api.try_create("project", fq_name=["nodomain", "p"], parent_type="domain")
    assert (answer.status, answer.text) == (400, "Parent ['nodomain'] type domain does not exist")


async def test_a_network_without_parent_type_is_an_internal_error(api: Caller) -> None:
    project = await api.project()
    answer = await api.try_create("virtual-network", fq_name=[*project.fq_name, "n"])
    assert (answer.status, answer.text) == (500, "KeyError: 'parent_uuid'")


async def test_an_interface_without_parent_type_is_rejected(api: Caller) -> None:
    network = await api.network()
    answer = await api.try_create(
        "virtual-machine-interface", fq_name=[*network.fq_name[:-1], "i"], virtual_network_refs=[network.reference]
    )
    assert answer.status == 400
    assert answer.text.startswith("Missing parent type: None. Allowed types: [")


async def test_every_object_gets_the_common_properties(api: Caller) -> None:
    machine = await api.virtual_machine()
    shown = await api.read(machine)
    assert shown["display_name"] == machine.fq_name[-1]
    assert shown["id_perms"]["enable"] is True
    assert shown["id_perms"]["uuid"]["uuid_mslong"] == uuid.UUID(machine.uuid).int >> 64
    assert {"owner", "owner_access", "global_access", "share"} <= set(shown["perms2"])


async def test_only_changes_of_the_object_itself_modify_it(api: Caller) -> None:
    network, machine = await api.network(), await api.virtual_machine()
    before = (await api.read(machine))["id_perms"]["last_modified"]
    await api.interface(network, machine)
    assert (await api.read(machine))["id_perms"]["last_modified"] == before
    await api.put(machine, display_name="x")
    assert (await api.read(machine))["id_perms"]["last_modified"] != before
