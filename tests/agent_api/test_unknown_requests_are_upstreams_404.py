"""No route for a path or a method: 404 `{"error":"Unknown Request"}`, never a 405, whatever the bytes."""

import asyncio
import json

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import Settle
from tests.support.agent import DEADLINE, ServedAgent
from tests.support.machines import SAMPLE_VM, SAMPLE_VMI, make_machine

UNKNOWN = [
    ("GET", "/"),
    ("GET", "/vm"),
    ("GET", "/vm/"),
    ("GET", "/vm-cfg"),
    ("GET", "/ports"),
    ("HEAD", "/vm-cfg/k8s__default__p1"),
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
    ("HEAD", "/gateway"),
]


async def ask(served: ServedAgent, method: str, path: str) -> tuple[int, str, bytes]:
    """Status, content type and body of a request whose path is sent as it stands."""
    reader, writer = await asyncio.open_connection(*served.address)
    async with asyncio.timeout(DEADLINE):
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    status, *headers = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in headers)
    return int(status.split()[1]), fields["Content-Type"], body


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
async def test_it_is_an_unknown_request(served: ServedAgent, method: str, path: str) -> None:
    status, kind, body = await ask(served, method, path)
    assert (status, kind) == (404, "application/json; charset=UTF-8")
    assert method == "HEAD" or json.loads(body) == {"error": "Unknown Request"}


@pytest.mark.parametrize(
    "path", ["/vm-cfg/", "/vm-cfg/../../../etc/passwd", "/vm-cfg/%2e%2e/x", "/vm-cfg/%ff", "/vm-cfg//"]
)
async def test_a_name_that_means_a_place_elsewhere_is_only_a_name_that_is_not_there(
    served: ServedAgent, path: str
) -> None:
    status, _, body = await ask(served, "GET", path)
    assert (status, json.loads(body)) == (404, {"error": "{ Not Found }"})


async def test_a_uid_of_strange_bytes_is_nobodys(served: ServedAgent, store: SqliteStore, settle: Settle) -> None:
    machine = make_machine()
    await store.put_machine(machine)
    await settle()
    for uid in ("%ff", "%00", "%ED%B3%BF", "%C3%BC"):
        status, _, body = await ask(served, "GET", f"/vm-cfg/{machine.name}?uid={uid}")
        assert (status, json.loads(body)) == (404, {"error": "{ Not Found }"}), uid
