"""Virtual machines, their interfaces and virtual routers."""

import uuid

import pytest

from tests.support.contrail_callers import Caller, Object, unique

_MACS = "virtual_machine_interface_mac_addresses"


async def test_an_interface_refers_to_network_machine_and_routing_instance(api: Caller) -> None:
    network, machine = await api.network(), await api.virtual_machine()
    shown = await api.read(await api.interface(network, machine))
    assert [ref["uuid"] for ref in shown["virtual_network_refs"]] == [network.uuid]
    assert [ref["to"] for ref in shown["virtual_machine_refs"]] == [machine.fq_name]
    assert [ref["to"] for ref in shown["routing_instance_refs"]] == [[*network.fq_name, network.fq_name[-1]]]


async def test_a_mac_is_derived_from_the_uuid(api: Caller) -> None:
    wanted = str(uuid.uuid4())
    shown = await api.read(await api.interface(await api.network(), uuid=wanted))
    expected = ":".join(("02", wanted[0:2], wanted[2:4], wanted[4:6], wanted[6:8], wanted[9:11]))
    assert shown[_MACS] == {"mac_address": [expected]}


@pytest.mark.parametrize("sent", ["02-11-22-33-44-55", "nonsense"])
async def test_a_mac_is_stored_as_sent_but_for_hyphens(api: Caller, sent: str) -> None:
    network = await api.network()
    interface = await api.interface(network, virtual_machine_interface_mac_addresses={"mac_address": [sent]})
    shown = await api.read(interface)
    assert shown[_MACS] == {"mac_address": [sent.replace("-", ":")]}


async def test_one_mac_may_be_used_twice_in_a_network(api: Caller) -> None:
    network = await api.network()
    for _ in range(2):
        await api.interface(network, virtual_machine_interface_mac_addresses={"mac_address": ["02:00:00:00:00:01"]})


@pytest.mark.parametrize(
    ("references", "text"), [({}, "KeyError: 'virtual_network_refs'"), ([], "IndexError: list index out of range")]
)
async def test_an_interface_needs_a_network(api: Caller, references: Object | list[Object], text: str) -> None:
    project = await api.project()
    given: Object = {"virtual_network_refs": references} if isinstance(references, list) else {}
    answer = await api.try_create(
        "virtual-machine-interface", fq_name=[*project.fq_name, "i"], parent_type="project", **given
    )
    assert (answer.status, answer.text) == (500, text)


@pytest.mark.parametrize(
    ("known", "with_uuid", "status", "text"),
    [
        (False, False, 400, "Unknown reference in resource create {"),
        (False, True, 404, "Unknown id: "),
        (True, True, 500, "vnc_api.exceptions.NoIdError: Unknown id: "),
    ],
)
async def test_an_unknown_network_is_refused(api: Caller, known: bool, with_uuid: bool, status: int, text: str) -> None:
    network = await api.network()
    reference: Object = {"to": [*network.fq_name[:-1], unique("nope")]}
    if with_uuid:
        reference["uuid"] = network.uuid if known else str(uuid.uuid4())
    answer = await api.try_create(
        "virtual-machine-interface",
        fq_name=[*network.fq_name[:-1], "i"],
        parent_type="project",
        virtual_network_refs=[reference],
    )
    assert answer.status == status, answer
    assert answer.text.startswith(text)


async def test_an_unknown_machine_is_refused(api: Caller) -> None:
    network = await api.network()
    name = unique("nope")
    body = {
        "fq_name": [*network.fq_name[:-1], "i"],
        "parent_type": "project",
        "virtual_network_refs": [network.reference],
    }
    answer = await api.try_create("virtual-machine-interface", **body, virtual_machine_refs=[{"to": [name]}])
    assert answer.status == 400
    assert answer.text.startswith("Unknown reference in resource create {")
    reference = {"to": [name], "uuid": str(uuid.uuid4())}
    answer = await api.try_create("virtual-machine-interface", **body, virtual_machine_refs=[reference])
    assert (answer.status, answer.text) == (500, f"vnc_api.exceptions.NoIdError: Unknown id: virtual_machine {name}")


async def test_a_reference_of_a_create_needs_a_name(api: Caller) -> None:
    network = await api.network()
    answer = await api.try_create(
        "virtual-machine-interface",
        fq_name=[*network.fq_name[:-1], "i"],
        parent_type="project",
        virtual_network_refs=[{"uuid": network.uuid}],
    )
    assert (answer.status, answer.text) == (500, "KeyError: 'to'")


async def test_an_interface_can_be_administratively_down(api: Caller) -> None:
    interface = await api.interface(await api.network(), id_perms={"enable": False})
    assert (await api.read(interface))["id_perms"]["enable"] is False


async def test_a_machine_shows_its_interfaces_and_routers(api: Caller) -> None:
    network, machine = await api.network(), await api.virtual_machine(server_type="container")
    interface = await api.interface(network, machine)
    router = await api.virtual_router(virtual_router_ip_address="192.0.2.1")
    await api.refer(router, machine)
    shown = await api.read(machine)
    assert [ref["uuid"] for ref in shown["virtual_machine_interface_back_refs"]] == [interface.uuid]
    assert [ref["uuid"] for ref in shown["virtual_router_back_refs"]] == [router.uuid]
    await api.refer(router, machine, "DELETE")
    assert "virtual_router_back_refs" not in await api.read(machine)


async def test_two_routers_may_have_one_address(api: Caller) -> None:
    routers = [await api.virtual_router(virtual_router_ip_address="192.0.2.1") for _ in range(2)]
    assert [(await api.read(router))["virtual_router_ip_address"] for router in routers] == ["192.0.2.1"] * 2


async def test_a_router_shows_all_machines_that_are_linked(api: Caller) -> None:
    router, machines = await api.virtual_router(), [await api.virtual_machine() for _ in range(3)]
    for machine in machines:
        await api.refer(router, machine)
    shown = (await api.read(router))["virtual_machine_refs"]
    assert {reference["uuid"]: reference["to"] for reference in shown} == {each.uuid: each.fq_name for each in machines}


async def test_an_interface_that_moves_keeps_the_routing_instance_of_its_first_network(api: Caller) -> None:
    first, second = await api.network(), await api.network()
    interface = await api.interface(first)
    assert (await api.put(interface, virtual_network_refs=[second.reference])).status == 200
    shown = await api.read(interface)
    assert [each["uuid"] for each in shown["virtual_network_refs"]] == [second.uuid]
    assert [each["to"] for each in shown["routing_instance_refs"]] == [[*first.fq_name, first.fq_name[-1]]]


async def test_a_router_can_be_deleted_while_machines_are_linked(api: Caller) -> None:
    machine = await api.virtual_machine()
    router = await api.virtual_router()
    await api.refer(router, machine)
    assert (await api.delete(router)).status == 200
