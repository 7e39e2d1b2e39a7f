"""VncStore: a writer that ends after any request leaves nothing that the next one does not finish."""

from collections.abc import Awaitable
from typing import TypeVar

import pytest

from contrail_config.errors import StoreError
from contrail_config.objects import interface_uuid
from contrail_config.store import DEFAULT_HOLD
from contrail_config.vnc.errors import VncForbiddenError
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Made
from tests.support.fake_clock import FakeClock
from tests.support.virtual_networks import make_network, start_pod

UID = "0a000000-0000-4000-8000-000000000001"
MOST_WRITES = 30
HOLD = 60.0
PODS = ("virtual-machine", "virtual-machine-interface", "instance-ip")


T = TypeVar("T")


class Kill:
    """Permits a number of writes; the process is as good as dead after them."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def __call__(self) -> float:
        self.left -= 1
        if self.left < 0:
            raise VncForbiddenError("killed")
        return 60.0


def counted(double: ContrailApi) -> dict[str, int]:
    return {kind: len(double.database.of_kind(KINDS[kind])) for kind in PODS}


def linked(double: ContrailApi, router: Made) -> list[str]:
    return list(double.database.objects[router.uuid].references.get("virtual-machine", {}))


async def cut_off(operation: Awaitable[T]) -> T | None:
    """Returns the result of an operation, or None if the writer was killed in it."""
    try:
        return await operation
    except StoreError as error:
        if "killed" not in str(error):
            raise
        return None


async def restarted(open_vnc: OpenVnc) -> VncStore:
    """A manager that starts: it finishes what was left, and releases addresses of interfaces without a machine."""
    store = await open_vnc()
    machines = await store.recover_virtual_machines()
    known = {interface.uuid for machine in machines for interface in machine.interfaces}
    await store.release(sorted(await store.address_owners() - known), hold=0)
    return store


@pytest.mark.parametrize("writes", range(MOST_WRITES))
async def test_a_pod_whose_creation_is_cut_off_is_whole_after_the_next(
    open_vnc: OpenVnc, double: ContrailApi, router: Made, writes: int
) -> None:
    network = await (await open_vnc()).put_network(make_network())
    killed = await open_vnc(Kill(writes))
    cut = await cut_off(start_pod(killed, [network] * 2, uid=UID))
    store = await restarted(open_vnc)
    if cut is None and not await store.virtual_machines():
        assert counted(double) == dict.fromkeys(PODS, 0)
        assert linked(double, router) == []
    machine = await start_pod(store, [network] * 2, uid=UID)
    assert await store.virtual_machines() == [machine]
    assert counted(double) == {"virtual-machine": 1, "virtual-machine-interface": 2, "instance-ip": 2}
    assert linked(double, router) == [UID]
    assert await store.address_owners() == {interface_uuid(UID, index) for index in range(2)}


@pytest.mark.parametrize("writes", range(MOST_WRITES))
async def test_a_pod_whose_deletion_is_cut_off_leaves_nothing_after_the_next(
    open_vnc: OpenVnc, double: ContrailApi, router: Made, clock: FakeClock, writes: int
) -> None:
    first = await open_vnc()
    network = await first.put_network(make_network())
    await start_pod(first, [network] * 2, uid=UID)
    killed = await open_vnc(Kill(writes))
    await cut_off(killed.delete_virtual_machine(UID, hold=0))
    store = await restarted(open_vnc)
    await store.delete_virtual_machine(UID, hold=0)
    clock.advance(DEFAULT_HOLD)
    await store._expire()
    assert counted(double) == dict.fromkeys(PODS, 0)
    assert linked(double, router) == []
    await store.delete_network(network.uuid)
    assert await store.networks() == []


@pytest.mark.parametrize("writes", range(1, MOST_WRITES))
async def test_addresses_of_a_deletion_that_is_cut_off_are_held_as_long_as_it_chose(
    open_vnc: OpenVnc, router: Made, clock: FakeClock, writes: int
) -> None:
    first = await open_vnc()
    network = await first.put_network(make_network())
    await start_pod(first, [network] * 2, uid=UID)
    chosen = clock() + HOLD
    killed = await open_vnc(Kill(writes))
    await cut_off(killed.delete_virtual_machine(UID, hold=HOLD))
    clock.advance(HOLD / 2)
    store = await restarted(open_vnc)
    assert [each.held_until for each in store._cache.addresses] == [pytest.approx(chosen, abs=0.01)] * 2


async def test_addresses_of_a_deletion_that_was_cut_off_long_ago_are_held_as_usual(
    open_vnc: OpenVnc, router: Made, clock: FakeClock
) -> None:
    """The vrouter may have served the pod until the restart."""
    first = await open_vnc()
    network = await first.put_network(make_network())
    await start_pod(first, [network], uid=UID)
    killed = await open_vnc(Kill(1))
    await cut_off(killed.delete_virtual_machine(UID, hold=HOLD))
    clock.advance(100 * HOLD)
    store = await restarted(open_vnc)
    assert [each.held_until for each in store._cache.addresses] == [pytest.approx(clock() + DEFAULT_HOLD, abs=0.01)]
