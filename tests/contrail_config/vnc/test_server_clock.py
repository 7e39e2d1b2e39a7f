"""Managers agree by the server's clock when holds end, whatever their own clocks say."""

import time
from email.utils import formatdate
from types import SimpleNamespace

import pytest

from contrail_config.store import DEFAULT_HOLD
from contrail_config.vnc import server_clock
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.server_clock import ServerClock
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.virtual_networks import make_network, start_pod

HOURS = 3 * 3600.0


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the manager's machine is hours ahead of the server's."""
    clocks = SimpleNamespace(time=lambda: time.time() + HOURS, monotonic=time.monotonic)
    monkeypatch.setattr(server_clock, "time", clocks)


def test_before_an_answer_it_is_the_time_of_the_machine() -> None:
    assert ServerClock()() == pytest.approx(time.time(), abs=1)


@pytest.mark.parametrize("date", [None, "", "soon", "Sun, 99 Nov 2026 10:00:00 GMT"])
def test_an_answer_without_a_time_changes_nothing(date: str | None) -> None:
    clock = ServerClock()
    clock.answered(date)
    assert clock() == pytest.approx(time.time(), abs=1)


def test_the_time_of_the_first_answer_counts() -> None:
    clock = ServerClock()
    for seconds in (1_000_000.0, 2_000_000.0):
        clock.answered(formatdate(seconds, usegmt=True))
    assert clock() == pytest.approx(1_000_000, abs=1)


@pytest.mark.usefixtures("ahead")
async def test_a_manager_whose_clock_is_ahead_holds_addresses_until_their_end(double: ContrailApi) -> None:
    async with connect(VncAccess((double.url,)), deadline=10) as client:
        store = await VncStore.open(client, cluster="k8s")
        try:
            network = await store.put_network(make_network())
            machine = await start_pod(store, [network])
            await store.delete_virtual_machine(machine.uuid)
            ends = [each.held_until for each in (await store.address_page(network.uuid, limit=9)).addresses]
        finally:
            await store.close()
    assert ends == [pytest.approx(time.time() + DEFAULT_HOLD, abs=3)] * len(ends)
    assert ends
