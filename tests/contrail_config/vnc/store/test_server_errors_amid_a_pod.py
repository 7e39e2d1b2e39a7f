"""VncStore: a server that answers 500 to one request of a pod's creation or deletion, before or after it did it.

The same writer tries again, as the manager does.
"""

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.objects import VirtualNetwork, interface_uuid
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.test_vnc_store_kills import PODS, UID, counted, linked
from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Made
from tests.support.virtual_networks import make_network, start_pod

MOST_REQUESTS = 12
MOMENTS = pytest.mark.parametrize("moment", ["before_request", "after_write"])
NUMBERS = pytest.mark.parametrize("number", range(1, MOST_REQUESTS + 1))


class ErrorAt:
    """Answers the request of this number with 500."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, _request: str) -> None:
        self.left -= 1
        if not self.left:
            raise ApiError(500, "Internal Server Error")


async def with_error_at(
    double: ContrailApi, moment: str, number: int, attempt: Callable[[], Awaitable[object]]
) -> None:
    """Tries with an error at the request of this number, if there are as many, and then again."""
    error = ErrorAt(number)
    setattr(double.faults, moment, error)
    with contextlib.suppress(StoreUnavailableError):
        await attempt()
        assert error.left > 0, "the error was not noticed"
    setattr(double.faults, moment, None)
    await attempt()


@pytest.fixture
async def network(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network())


@MOMENTS
@NUMBERS
async def test_a_pod_is_created_whole_and_once(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made, moment: str, number: int
) -> None:
    await with_error_at(double, moment, number, lambda: start_pod(vnc_store, [network] * 2, uid=UID))
    assert counted(double) == {"virtual-machine": 1, "virtual-machine-interface": 2, "instance-ip": 2}
    assert linked(double, router) == [UID]
    assert [machine.uuid for machine in await vnc_store.virtual_machines()] == [UID]
    assert await vnc_store.address_owners() == {interface_uuid(UID, index) for index in range(2)}
    double.requests.clear()
    await vnc_store.repairs.repair()
    assert {request.split()[1] for request in double.requests} == {"/list-bulk-collection"}  # nothing to repair


@MOMENTS
@NUMBERS
async def test_a_pod_is_deleted_without_a_trace(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made, moment: str, number: int
) -> None:
    await start_pod(vnc_store, [network] * 2, uid=UID)
    await with_error_at(double, moment, number, lambda: vnc_store.delete_virtual_machine(UID, hold=0))
    assert counted(double) == dict.fromkeys(PODS, 0)
    assert linked(double, router) == []
    assert (await vnc_store.virtual_machines(), await vnc_store.address_owners()) == ([], set())
    await vnc_store.delete_network(network.uuid)


async def test_a_pod_has_no_more_requests_than_are_tried(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made
) -> None:
    for operation in (start_pod(vnc_store, [network] * 2, uid=UID), vnc_store.delete_virtual_machine(UID, hold=0)):
        before = len(double.requests)
        await operation
        assert len(double.requests) - before <= MOST_REQUESTS


@pytest.mark.parametrize("kind", ["virtual-machine", "virtual-machine-interface"])
async def test_a_pod_is_written_again_although_another_server_still_knows_what_was_deleted(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made, kind: str
) -> None:
    """Each server keeps the uuids of deleted objects until it is told."""
    await start_pod(vnc_store, [network] * 2, uid=UID)
    await vnc_store.delete_virtual_machine(UID, hold=0)
    known = f"{UID} already exists with fq_name: ['deleted']"
    double.faults.reject(409, known, matches=f"POST /{kind}s")
    with pytest.raises(StoreError):
        await start_pod(vnc_store, [network] * 2, uid=UID)
    await start_pod(vnc_store, [network] * 2, uid=UID)
    assert counted(double) == {"virtual-machine": 1, "virtual-machine-interface": 2, "instance-ip": 2}
    assert linked(double, router) == [UID]
