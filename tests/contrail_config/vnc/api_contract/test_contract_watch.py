"""Watches: initial state, and one event for each change."""

import asyncio

from tests.support.contrail_callers import Caller, Made, Object, annotations, subnet
from tests.support.contrail_watches import watching


async def test_a_watch_begins_with_the_state_of_each_type_in_order(api: Caller) -> None:
    machine = await api.virtual_machine(annotations=annotations(a="1"))
    async with watching(api, "virtual_machine,instance_ip", virtual_machine_fields="annotations") as frames:
        first, second = await frames.next(), await frames.next()
    assert (first.event, second.event) == ("init", "init")
    (items,) = first.data.values()
    (found,) = [item["virtual-machine"] for item in items if item["virtual-machine"]["uuid"] == machine.uuid]
    assert found == {"uuid": machine.uuid, "fq_name": machine.fq_name, "annotations": annotations(a="1")}
    assert list(second.data) == ["instance-ips"]


async def test_changes_are_events_with_the_chosen_fields(api: Caller) -> None:
    async with watching(api, "virtual_machine", virtual_machine_fields="annotations") as frames:
        await frames.next()
        machine = await api.virtual_machine(annotations=annotations(a="1"))
        created = await frames.next_of(machine.uuid)
        await api.put(machine, annotations=annotations(a="2"))
        updated = await frames.next_of(machine.uuid)
        await api.delete(machine)
        deleted = await frames.next_of(machine.uuid)
    assert (created.event, created.data["annotations"]) == ("create", annotations(a="1"))
    assert created.data["parent_type"] is None
    assert (updated.event, updated.data["annotations"]) == ("update", annotations(a="2"))
    assert (deleted.event, deleted.data) == ("delete", {"uuid": machine.uuid})


async def test_a_new_interface_is_created_and_updated(api: Caller) -> None:
    network = await api.network()
    async with watching(api, "virtual_machine_interface") as frames:
        await frames.next()
        interface = await api.interface(network)
        events = [(await frames.next_of(interface.uuid)).event for _ in range(2)]
    assert events == ["create", "update"]


async def test_equal_updates_and_repeated_references_are_events(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"))
    address, interface = await api.address(network), await api.interface(network)
    async with watching(api, "instance_ip", instance_ip_fields="annotations") as frames:
        await frames.next()
        await api.put(address, annotations=annotations(a="1"))
        await api.put(address, annotations=annotations(a="1"))
        await api.refer(address, interface)
        await api.refer(address, interface)
        assert [(await frames.next_of(address.uuid)).event for _ in range(4)] == ["update"] * 4


async def test_changed_back_references_are_no_event(api: Caller) -> None:
    network, machine = await api.network(), await api.virtual_machine()
    async with watching(api, "virtual_machine") as frames:
        await frames.next()
        await api.interface(network, machine)
        await api.put(machine, display_name="last")
        assert (await frames.next_of(machine.uuid)).data["display_name"] == "last"


async def test_watches_that_begin_among_changes_end_with_what_the_server_has(api: Caller) -> None:
    before = [await api.virtual_machine(annotations=annotations(a="1")) for _ in range(5)]
    last: dict[int, Made] = {}

    async def change() -> None:
        for made in before:
            await api.put(made, annotations=annotations(a="2"))
            await api.delete(made)
        last[0] = await api.virtual_machine(annotations=annotations(a="last"))

    async def follow() -> dict[str, Object]:
        """The virtual machines of the test, as the events up to the last one show them."""
        seen: dict[str, Object] = {}
        async with watching(api, "virtual_machine", virtual_machine_fields="annotations") as frames:
            (items,) = (await frames.next()).data.values()
            seen.update((item["virtual-machine"]["uuid"], item["virtual-machine"]) for item in items)
            while not any(item.get("annotations") == annotations(a="last") for item in seen.values()):
                frame = await frames.next()
                if frame.event:
                    (item,) = frame.data.values()
                    seen[item["uuid"]] = item
                    if frame.event == "delete":
                        del seen[item["uuid"]]
        return seen

    async with asyncio.TaskGroup() as tasks:
        watches = [tasks.create_task(follow()) for _ in range(10)]
        await change()
    watched = [each.result() for each in watches]
    mine = {each.uuid for each in before}
    assert [mine & seen.keys() for seen in watched] == [set()] * 10
    assert all(last[0].uuid in seen for seen in watched)


async def test_types_with_hyphens_have_initial_state_but_no_events(api: Caller) -> None:
    async with watching(api, "virtual-machine,virtual_machine") as hyphened:
        assert list((await hyphened.next()).data) == ["virtual-machines"]


async def test_an_unknown_type_is_not_found(api: Caller) -> None:
    answer = await api.request("GET", "/watch", query={"resource_type": "nosuch"})
    assert (answer.status, answer.text) == (404, "Invalid Contrail resource type:'nosuch'")


async def test_a_watch_needs_a_type(api: Caller) -> None:
    answer = await api.request("GET", "/watch")
    assert (answer.status, answer.text) == (400, "resource_type required in request")
