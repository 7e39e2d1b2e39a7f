"""No route for a path or a method: 404 `{"error":"Unknown Request"}`, never a 405, whatever the bytes."""

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import Settle
from tests.support.agent import ServedAgent
from tests.support.machines import SAMPLE_VM, SAMPLE_VMI, make_machine
from tests.support.raw_http import exchanged, request

UNKNOWN = [
    ("GET", "/"),
    ("GET", "/vm"),
    ("GET", "/vm/"),
    ("GET", "/vm-cfg"),
    ("GET", "/ports"),
    ("PUT", "/vm"),
    ("POST", "/vm-cfg/k8s__default__p1"),
    ("DELETE", "/vm-cfg/k8s__default__p1"),
    ("POST", f"/vm/{SAMPLE_VM}"),
    ("DELETE", "/vm"),
    ("GET", f"/vm/{SAMPLE_VM.upper()}"),
    ("DELETE", f"/vm/{SAMPLE_VM.upper()}"),
    ("GET", f"/vm/{SAMPLE_VM}/"),
    ("GET", f"/vm/{SAMPLE_VM}x"),
    ("GET", f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}/"),
    ("GET", f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}/x"),
    ("DELETE", f"/vm/{SAMPLE_VM}/not-a-uuid"),
    ("GET", f"/vm/{SAMPLE_VM}%0a"),
    ("GET", "/vm/../vm-cfg/x"),
    ("GET", "/port"),
    ("DELETE", "/port"),
    ("PUT", f"/port/{SAMPLE_VMI}"),
    ("GET", f"/port/{SAMPLE_VMI.upper()}"),
    ("DELETE", f"/port/{SAMPLE_VMI}/"),
    ("GET", "/port/enable"),
    ("GET", "/syncports"),
    ("POST", "/syncports/"),
    ("PUT", "/gateway"),
    ("DELETE", "/gateway/vgw"),
    ("PUT", "/enable-port"),
    ("PUT", f"/enable-port/{SAMPLE_VMI.upper()}"),
    ("POST", f"/enable-port/{SAMPLE_VMI}"),
    ("GET", f"/disable-port/{SAMPLE_VMI}"),
]


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
async def test_it_is_an_unknown_request(served: ServedAgent, method: str, path: str) -> None:
    answer = await exchanged(served.address, request(method, path))
    assert (answer.status, answer.error) == (404, "Unknown Request")


async def test_of_an_unknown_request_for_a_head_there_is_a_head_alone(served: ServedAgent) -> None:
    for path in ("/vm-cfg/k8s__default__p1", "/gateway", "/openapi.json"):
        async with served.tcp.head(path) as answer:
            assert (answer.status, await answer.read()) == (404, b"")


@pytest.mark.parametrize(
    "path", ["/vm-cfg/", "/vm-cfg/../../../etc/passwd", "/vm-cfg/%2e%2e/x", "/vm-cfg/%ff", "/vm-cfg//"]
)
async def test_a_name_that_means_a_place_elsewhere_is_only_a_name_that_is_not_there(
    served: ServedAgent, path: str
) -> None:
    answer = await exchanged(served.address, request("GET", path))
    assert (answer.status, answer.error) == (404, "{ Not Found }")


async def test_a_uid_of_strange_bytes_is_nobodys(served: ServedAgent, store: SqliteStore, settle: Settle) -> None:
    machine = make_machine()
    await store.put_virtual_machine(machine)
    await settle()
    for uid in ("%ff", "%00", "%ED%B3%BF", "%C3%BC"):
        answer = await exchanged(served.address, request("GET", f"/vm-cfg/{machine.name}?uid={uid}"))
        assert (answer.status, answer.error) == (404, "{ Not Found }"), uid
