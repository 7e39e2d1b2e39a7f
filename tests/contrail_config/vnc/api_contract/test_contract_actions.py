"""Actions: names, and references."""

import uuid

import pytest

from tests.support.contrail_callers import Caller, Object, unique


@pytest.mark.parametrize("kind", ["virtual-machine", "virtual_machine"])
async def test_a_name_is_resolved(api: Caller, kind: str) -> None:
    machine = await api.virtual_machine()
    answer = await api.post("/fqname-to-id", {"type": kind, "fq_name": machine.fq_name})
    assert answer.json == {"uuid": machine.uuid}


async def test_an_unknown_name_or_type_is_not_found(api: Caller) -> None:
    name = unique("vm")
    answer = await api.post("/fqname-to-id", {"type": "virtual-machine", "fq_name": [name]})
    assert (answer.status, answer.text) == (404, f"Name ['{name}'] not found")
    answer = await api.post("/fqname-to-id", {"type": "nosuch", "fq_name": [name]})
    assert (answer.status, answer.text) == (404, "Resource type 'nosuch' not found")


async def test_a_uuid_is_resolved(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.post("/id-to-fqname", {"uuid": machine.uuid})
    assert answer.json == {"fq_name": machine.fq_name, "type": "virtual-machine"}
    unknown = str(uuid.uuid4())
    answer = await api.post("/id-to-fqname", {"uuid": unknown})
    assert (answer.status, answer.text) == (404, f"UUID {unknown} not found")


async def test_adding_and_deleting_a_reference_is_idempotent(api: Caller) -> None:
    network = await api.network()
    interface, machine = await api.interface(network), await api.virtual_machine()
    for operation in ("ADD", "ADD", "DELETE", "DELETE"):
        answer = await api.refer(interface, machine, operation)
        assert (answer.status, answer.json) == (200, {"uuid": interface.uuid})
    assert "virtual_machine_refs" not in await api.read(interface)


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({"uuid": "0a000000-0000-4000-8000-000000000001"}, 404, "Unknown id: 0a000000-0000-4000-8000-000000000001"),
        ({"ref-uuid": "0a000000-0000-4000-8000-000000000001"}, 404, "Unknown id: "),
        ({"ref-uuid": None, "ref-fq-name": ["no such machine"]}, 404, "Name ['no such machine'] not found"),
        ({"operation": "PUT"}, 400, "Bad Request: operation should be add or delete: PUT"),
        ({"ref-uuid": None}, 400, "Bad Request: ref-uuid or ref-fq-name must be specified"),
    ],
)
async def test_a_wrong_reference_is_refused(api: Caller, changes: Object, status: int, text: str) -> None:
    interface, machine = await api.interface(await api.network()), await api.virtual_machine()
    body = {
        "type": "virtual-machine-interface",
        "uuid": interface.uuid,
        "ref-type": "virtual-machine",
        "ref-uuid": machine.uuid,
        "operation": "ADD",
        **changes,
    }
    answer = await api.post("/ref-update", body)
    assert answer.status == status, answer
    assert answer.text.startswith(text)


async def test_a_relaxed_reference_does_not_block_the_deletion(api: Caller) -> None:
    network, machine = await api.network(), await api.virtual_machine()
    interface = await api.interface(network, machine)
    answer = await api.post("/ref-relax-for-delete", {"uuid": interface.uuid, "ref-uuid": machine.uuid})
    assert answer.json == {"uuid": interface.uuid}
    assert (await api.delete(machine)).status == 200


async def test_an_update_replaces_references(api: Caller) -> None:
    network = await api.network()
    first, second = await api.virtual_machine(), await api.virtual_machine()
    interface = await api.interface(network, first)
    await api.put(interface, virtual_machine_refs=[{"uuid": second.uuid, "to": second.fq_name}])
    assert [ref["uuid"] for ref in (await api.read(interface))["virtual_machine_refs"]] == [second.uuid]
    assert "virtual_machine_interface_back_refs" not in await api.read(first)
