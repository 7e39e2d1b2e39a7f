"""Faults of the double: watches that lose or repeat events, lost responses, and the limit of connections."""

import asyncio
import base64

import aiohttp
import pytest

from tests.support.contrail_api.authentication import BasicAuthentication, TokenAuthentication
from tests.support.contrail_api.keystone import Keystone
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.contrail_callers import Caller, annotations, caller_of, unique
from tests.support.contrail_watches import watching
from tests.support.recorded_reflector import eventually


async def test_an_object_that_is_gone_when_its_event_is_sent_is_deleted_twice(
    racing: Caller, double: ContrailApi
) -> None:
    async with watching(racing, "virtual_machine", virtual_machine_fields="annotations") as frames:
        await frames.next()
        double.watch_settings.resumed.clear()
        machine = await racing.virtual_machine()
        await racing.delete(machine)
        double.watch_settings.resumed.set()
        first, second = await frames.next_of(machine.uuid), await frames.next_of(machine.uuid)
    assert (first.event, first.data) == ("delete", {"uuid": machine.uuid, "annotations": None})
    assert (second.event, second.data) == ("delete", {"uuid": machine.uuid})


async def test_events_show_the_object_as_it_is_when_they_are_sent(racing: Caller, double: ContrailApi) -> None:
    async with watching(racing, "virtual_machine", virtual_machine_fields="annotations") as frames:
        await frames.next()
        double.watch_settings.resumed.clear()
        machine = await racing.virtual_machine(annotations=annotations(a="1"))
        await racing.put(machine, annotations=annotations(a="2"))
        double.watch_settings.resumed.set()
        events = [await frames.next_of(machine.uuid) for _ in range(2)]
    assert [each.event for each in events] == ["create", "update"]
    assert [each.data["annotations"] for each in events] == [annotations(a="2")] * 2


async def test_a_create_whose_client_is_gone_is_completed(racing: Caller, double: ContrailApi) -> None:
    """The real server does not notice that. If it stopped here, the name would stay taken without an object."""
    claimed, resumed = asyncio.Event(), asyncio.Event()

    async def gate() -> None:
        claimed.set()
        await resumed.wait()

    double.pauses.before_write = gate
    before = len(double.connections)
    creating = asyncio.create_task(racing.virtual_machine())
    await claimed.wait()
    creating.cancel()
    await asyncio.gather(creating, return_exceptions=True)
    await eventually(lambda: len(double.connections) == before)
    resumed.set()
    await eventually(lambda: double.database.of_kind(KINDS["virtual-machine"]))


async def test_events_can_be_lost_and_repeated(racing: Caller, double: ContrailApi) -> None:
    async with watching(racing, "virtual_machine") as frames:
        await frames.next()
        double.watch_settings.dropped = 1
        await racing.virtual_machine()
        double.watch_settings.duplicated = 1
        machine = await racing.virtual_machine()
        assert [next(iter((await frames.next()).data.values()))["uuid"] for _ in range(2)] == [machine.uuid] * 2


async def test_an_idle_watch_is_kept_alive(racing: Caller, double: ContrailApi) -> None:
    double.watch_settings.keepalive_interval = 0.01
    async with watching(racing, "virtual_machine") as frames:
        await frames.next()
        assert (await frames.next()).event == ""


async def test_a_watch_ends_with_a_stop_event(racing: Caller, double: ContrailApi) -> None:
    async with watching(racing, "virtual_machine") as frames:
        await frames.next()
        double.stop_watches("the read failed")
        assert (await frames.next()).event == "stop"
        with pytest.raises(EOFError):
            await frames.next()


async def test_a_response_is_lost_after_the_write(racing: Caller, double: ContrailApi) -> None:
    double.faults.reset_after_write.append("POST /virtual-machines")
    name = unique("vm")
    with pytest.raises(aiohttp.ClientError):
        await racing.create("virtual-machine", fq_name=[name])
    assert (await racing.get("/virtual-machines", fq_names=name))["virtual-machines"]


async def test_a_connection_above_the_limit_gets_no_answer_until_another_closes(double: ContrailApi) -> None:
    double.connections.limit = 1
    async with caller_of(double.url) as first, caller_of(double.url) as second:
        await first.get("/")
        waiting = asyncio.create_task(second.get("/"))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        await first.session.close()
        await waiting


async def test_tokens_are_required_but_for_the_home_page() -> None:
    authentication = TokenAuthentication(Keystone())
    async with serve_contrail_api(authentication=authentication) as server, caller_of(server.url) as api:
        assert (await api.request("GET", "/")).status == 200
        assert (await api.request("GET", "/projects")).status == 401


async def test_a_password_is_required() -> None:
    authentication = BasicAuthentication("admin", "secret")
    async with serve_contrail_api(authentication=authentication) as server, caller_of(server.url) as api:
        answers = {
            header: await api.request("GET", "/projects", headers={"Authorization": header} if header else None)
            for header in ("", _basic("admin", "wrong"), _basic("admin", "secret"))
        }
    assert [answer.status for answer in answers.values()] == [401, 401, 200]
    assert "HTTP_AUTHORIZATION header missing" in answers[""].text


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
