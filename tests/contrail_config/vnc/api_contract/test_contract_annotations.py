"""Annotations: a map of strings by key."""

from tests.support.contrail_callers import Caller, annotations, unique


async def test_annotations_are_part_of_a_create_and_sorted_by_key(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(b="2", a="1"))
    assert (await api.read(machine))["annotations"] == annotations(a="1", b="2")


async def test_a_repeated_key_keeps_the_last_value(api: Caller) -> None:
    pairs = [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]
    machine = await api.virtual_machine(annotations={"key_value_pair": pairs})
    assert (await api.read(machine))["annotations"] == annotations(a="2")


async def test_a_value_that_is_no_string_is_rejected(api: Caller) -> None:
    answer = await api.try_create(
        "virtual-machine", fq_name=[unique("vm")], annotations={"key_value_pair": [{"key": "a", "value": 5}]}
    )
    assert answer.status == 400
    assert answer.text.startswith("Bad property in create: Error validating property annotations value")
    assert "string value expected instead of 5" in answer.text


async def test_a_value_may_have_any_text(api: Caller) -> None:
    text = '{"a": ["ä", "\\n", null]}' * 1000
    machine = await api.virtual_machine(annotations=annotations(**{"a:b/c": text}))
    assert (await api.read(machine))["annotations"] == annotations(**{"a:b/c": text})


async def test_an_empty_list_is_no_property(api: Caller) -> None:
    machine = await api.virtual_machine(annotations={"key_value_pair": []})
    assert "annotations" not in await api.read(machine)


async def test_an_update_replaces_the_whole_map(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(a="1", b="2"))
    await api.put(machine, annotations=annotations(c="3"))
    assert (await api.read(machine))["annotations"] == annotations(c="3")


async def test_null_as_the_map_is_an_internal_error(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(a="1"))
    assert (await api.put(machine, annotations=None)).status == 500


async def test_single_keys_are_set_and_deleted(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(a="1", b="2"))
    updates = [
        {"field": "annotations", "operation": "set", "value": {"key": "c", "value": "3"}},
        {"field": "annotations", "operation": "delete", "position": "a"},
        {"field": "annotations", "operation": "delete", "position": "absent"},
    ]
    answer = await api.post("/prop-collection-update", {"uuid": machine.uuid, "updates": updates})
    assert (answer.status, answer.text) == (200, "")
    assert (await api.read(machine))["annotations"] == annotations(b="2", c="3")


async def test_keys_of_an_unknown_object_are_not_found(api: Caller) -> None:
    unknown = "0a000000-0000-4000-8000-000000000001"
    answer = await api.post("/prop-collection-update", {"uuid": unknown, "updates": []})
    assert (answer.status, answer.text) == (404, f"Object Not Found: {unknown}")


async def test_a_property_that_is_no_map_is_rejected(api: Caller) -> None:
    machine = await api.virtual_machine()
    update = {"field": "display_name", "operation": "set", "value": {"key": "a", "value": "b"}}
    answer = await api.post("/prop-collection-update", {"uuid": machine.uuid, "updates": [update]})
    assert (answer.status, answer.text) == (400, 'display_name neither "ListProperty" nor "MapProperty"')
