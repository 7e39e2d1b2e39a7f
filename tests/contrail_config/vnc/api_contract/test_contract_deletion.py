"""Deletion: what refuses it, and what an unknown uuid answers."""

import uuid

from tests.support.contrail_callers import Caller, Made, statuses, subnet


async def refused(api: Caller, made: Made, text: str) -> bool:
    answer = await api.delete(made)
    return answer.status == 409 and answer.text.startswith(text)


REFERRED = "Delete when resource still referred: ["


async def test_a_machine_with_interfaces_or_a_router_is_referred(api: Caller) -> None:
    machine, linked = await api.virtual_machine(), await api.virtual_machine()
    await api.interface(await api.network(), machine)
    assert await refused(api, machine, REFERRED)
    router = await api.virtual_router()
    await api.refer(router, linked)
    assert await refused(api, linked, REFERRED)
    await api.refer(router, linked, "DELETE")
    assert (await api.delete(linked)).status == 200


async def test_an_interface_with_an_address_is_referred(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"))
    interface = await api.interface(network)
    await api.address(network, virtual_machine_interface_refs=[interface.reference])
    assert await refused(api, interface, REFERRED)


async def test_a_network_with_an_unlinked_address_is_referred(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"))
    await api.address(network)
    assert await refused(api, network, REFERRED)


async def test_a_network_with_an_interface_is_referred(api: Caller) -> None:
    network = await api.network()
    await api.interface(network)
    assert await refused(api, network, REFERRED)


async def test_an_ipam_with_a_network_is_referred(api: Caller) -> None:
    await api.network()
    ipam = next(made for made in api.made if made.kind == "network-ipam")
    assert await refused(api, ipam, REFERRED)


async def test_a_project_with_children_stays(api: Caller) -> None:
    project = await api.project()
    await api.network(project=project)
    assert await refused(api, project, "Delete when children still present: [")


async def test_an_emptied_project_is_deleted_with_what_the_server_put_there(api: Caller) -> None:
    assert (await api.delete(await api.project())).status == 200


async def test_an_unknown_uuid_does_not_exist(api: Caller) -> None:
    unknown = str(uuid.uuid4())
    answer = await api.request("DELETE", f"/virtual-machine/{unknown}")
    assert (answer.status, answer.text) == (404, f"ID {unknown} does not exist")


async def test_a_uuid_of_another_type_is_not_found(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.request("DELETE", f"/virtual-network/{machine.uuid}")
    assert (answer.status, answer.text) == (404, f"No virtual-network object found for id {machine.uuid}")


async def test_a_second_delete_succeeds_or_finds_nothing(api: Caller) -> None:
    machine = await api.virtual_machine()
    assert set(await statuses(*(api.delete(machine) for _ in range(10)))) <= {200, 404}
