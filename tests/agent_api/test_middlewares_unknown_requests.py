"""No route for a path or a method: 404 `{"error":"Unknown Request"}`, never a 405, whatever the bytes."""

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import WaitForSync
from tests.support.raw_http import exchanged, request
from tests.support.served_agent import ServedAgent
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, make_virtual_machine

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
async def test_unknown_paths_and_methods_are_404(served: ServedAgent, method: str, path: str) -> None:
    answer = await exchanged(served.address, request(method, path))
    assert (answer.status, answer.error) == (404, "Unknown Request")


async def test_an_unknown_head_request_has_no_body(served: ServedAgent) -> None:
    for path in ("/vm-cfg/k8s__default__p1", "/gateway", "/openapi.json"):
        async with served.tcp.head(path) as answer:
            assert (answer.status, await answer.read()) == (404, b"")


@pytest.mark.parametrize(
    "path", ["/vm-cfg/", "/vm-cfg/../../../etc/passwd", "/vm-cfg/%2e%2e/x", "/vm-cfg/%ff", "/vm-cfg//"]
)
async def test_a_name_with_path_components_is_just_an_unknown_name(served: ServedAgent, path: str) -> None:
    answer = await exchanged(served.address, request("GET", path))
    assert (answer.status, answer.error) == (404, "{ Not Found }")


async def test_a_uid_of_arbitrary_bytes_matches_no_pod(
    served: ServedAgent, store: SqliteStore, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = make_virtual_machine()
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    for uid in ("%ff", "%00", "%ED%B3%BF", "%C3%BC"):
        answer = await exchanged(served.address, request("GET", f"/vm-cfg/{virtual_machine.name}?uid={uid}"))
        assert (answer.status, answer.error) == (404, "{ Not Found }"), uid
