"""Invalid request bodies on every endpoint: a clear status, a JSON error that names the field, and no change."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent_api.request_bodies import MAX_BODY_SIZE, SMALL_BODY_SIZE, RequestBodyReader
from tests.agent_api.conftest import StartAgent, change_in_progress
from tests.support.raw_http import connected, exchanged, request
from tests.support.served_agent import ServedAgent, instance_port_of, port_of, until
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI

SUBNET = {"ip-address": "10.1.0.0", "prefix-len": 16}

GOOD: dict[str, Any] = {
    "POST /vm": port_of(SAMPLE_VM, SAMPLE_VMI),
    "POST /port": instance_port_of(SAMPLE_VM, SAMPLE_VMI),
    "POST /gateway": {"interface": "vgw", "routing-instance": "d:p:v:v", "subnets": [SUBNET], "routes": [SUBNET]},
    "DELETE /gateway": {"interface": "vgw"},
}
"""A valid array item for each endpoint that reads a body."""

A_NAME = {"POST /vm": "vm-name", "POST /port": "id", "POST /gateway": "interface", "DELETE /gateway": "interface"}
"""A key of each endpoint whose value is or becomes part of a file path."""

OPTIONAL = {"vm-id", "vm-ifname", "vm-namespace", "vhostuser-mode", "author", "time"}
REQUIRED = {endpoint: [key for key in good if key not in OPTIONAL] for endpoint, good in GOOD.items()}

NOT_A_MAC = "is not a valid MAC address, use xx:xx:xx:xx:xx:xx format, not all zero"

every_endpoint = pytest.mark.parametrize("endpoint", list(GOOD))


async def rejected(served: ServedAgent, endpoint: str, body: Any, *, status: int = 400) -> str:
    """Returns the error, and checks that nothing was changed."""
    method, path = endpoint.split()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await exchanged(served.address, request(method, path, content))
    assert answer.status == status, answer
    assert len(served.agent.ports) == 0
    assert served.agent.gateways.all() == []
    return answer.error


@every_endpoint
class TestInvalidJson:
    """400 with the position of the error."""

    @pytest.mark.parametrize("body", [b"", b"[{", b"vm-uuid=x", b"\xff\xfe[]", b"[nan]", b"\x00", b"[{]}", b"[],"])
    async def test_is_400_with_the_position(self, served: ServedAgent, endpoint: str, body: bytes) -> None:
        assert (await rejected(served, endpoint, body)).startswith("body: invalid JSON: ")

    @pytest.mark.parametrize("body", [b"[" * 500_000, b'[{"x":' * 150_000])
    async def test_that_is_nested_too_deeply_is_400(self, served: ServedAgent, endpoint: str, body: bytes) -> None:
        error = await rejected(served, endpoint, body)
        assert error == "body: nested too deeply" or "Expected" in error

    async def test_compressed_bodies_are_not_decompressed(self, served: ServedAgent, endpoint: str) -> None:
        method, path = endpoint.split()
        packed = request(method, path, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip")
        answer = await exchanged(served.address, packed)
        assert (answer.status, answer.error[:18]) == (400, "body: invalid JSON")


@every_endpoint
class TestWrongTypes:
    """400 with the key, the expected type and the actual type."""

    @pytest.mark.parametrize("body", [7, "text", None, True, [7], [[]], ["text"], [None]])
    async def test_are_rejected(self, served: ServedAgent, endpoint: str, body: object) -> None:
        assert "Expected `" in await rejected(served, endpoint, body)

    async def test_are_rejected_for_every_key(self, served: ServedAgent, endpoint: str) -> None:
        for key in REQUIRED[endpoint]:
            wrongs: list[object] = [None, {}, 1.5]
            for wrong in wrongs:
                error = await rejected(served, endpoint, [GOOD[endpoint] | {key: wrong}])
                assert error.startswith(f"[0].{key}: "), error


@every_endpoint
class TestTooLargeBodies:
    """413, and no more is read than the limit allows."""

    async def test_are_rejected_by_content_length(self, served: ServedAgent, endpoint: str) -> None:
        error = await rejected(served, endpoint, b" " * (MAX_BODY_SIZE + 1), status=413)
        assert error == f"body: larger than {MAX_BODY_SIZE} bytes"

    async def test_are_rejected_when_chunked(self, served: ServedAgent, endpoint: str) -> None:
        method, path = endpoint.split()
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        async with connected(served.address) as connection:
            await connection.send(f"{method} {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(MAX_BODY_SIZE // 0x10000 + 1):
                await connection.send(chunk)
            answer = await connection.answer()
        assert (answer.status, answer.error) == (413, f"body: larger than {MAX_BODY_SIZE} bytes")


@every_endpoint
class TestSlowBodies:
    """408 after the timeout."""

    async def test_time_out_with_408(self, start_agent: StartAgent, endpoint: str) -> None:
        served = await start_agent(body_reader=RequestBodyReader(timeout=0.05))
        method, path = endpoint.split()
        head = f"{method} {path} HTTP/1.1\r\nHost: agent\r\n"
        for rest in ("Content-Length: 100\r\n\r\n[", "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"):
            answer = await exchanged(served.address, (head + rest).encode())
            assert (answer.status, answer.error) == (408, "body: timed out after 0.05 s")


class TestManyLargeBodies:
    """Their number is limited; further ones get 503, and small bodies are still read."""

    async def test_are_limited_in_number(self, start_agent: StartAgent) -> None:
        bodies = RequestBodyReader(max_large=2)
        served = await start_agent(body_reader=bodies)
        body = json.dumps([instance_port_of(SAMPLE_VM, str(uuid.uuid4())) for _ in range(100)]).encode()
        assert len(body) > SMALL_BODY_SIZE + 1000
        whole = request("POST", "/port", body)
        async with connected(served.address) as first, connected(served.address) as second:
            for connection in (first, second):
                await connection.send(whole[:-1000])
            await until(lambda: bodies.large_bodies_held == 2)
            answer = await exchanged(served.address, whole[:-1000])
            assert (answer.status, answer.error) == (503, "too many large bodies: limit is 2; retry later")
            async with served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as small:
                assert small.status == 200
            await first.send(whole[-1000:])
            assert (await first.answer()).status == 200
        async with served.tcp.post("/port", data=body) as later:
            assert later.status == 200

    async def test_hold_their_slot_until_the_request_is_done(self, start_agent: StartAgent) -> None:
        bodies = RequestBodyReader(max_large=1)
        served = await start_agent(body_reader=bodies)
        body = json.dumps([instance_port_of(SAMPLE_VM, str(uuid.uuid4())) for _ in range(100)]).encode()
        async with connected(served.address) as first:
            executor = served.agent.ports.executor
            async with change_in_progress(executor):
                await first.send(request("POST", "/port", body))
                await until(lambda: len(executor) == 2)
                answer = await exchanged(served.address, request("POST", "/port", body))
                assert answer.status == 503
            assert (await first.answer()).status == 200
        assert bodies.large_bodies_held == 0


@every_endpoint
class TestKeys:
    """Unknown keys are ignored, as by the vrouter agent; missing and duplicate ones are errors."""

    async def test_unknown_keys_are_ignored(self, served: ServedAgent, endpoint: str) -> None:
        method, path = endpoint.split()
        body = json.dumps([GOOD[endpoint] | {"unknown": [{"x": None}], "": "a number"}])
        long = body.replace('"a number"', "1" * 5000)
        answer = await exchanged(served.address, request(method, path, long.encode()))
        assert (answer.status, answer.json) == (200, {})

    async def test_missing_keys_are_reported(self, served: ServedAgent, endpoint: str) -> None:
        for key in REQUIRED[endpoint]:
            body = {other: value for other, value in GOOD[endpoint].items() if other != key}
            assert await rejected(served, endpoint, [body]) == f"[0]: Object missing required field `{key}`"

    async def test_duplicate_keys_are_rejected(self, served: ServedAgent, endpoint: str) -> None:
        text = json.dumps([GOOD[endpoint]])
        key = A_NAME[endpoint]
        twice = text.replace(f'"{key}"', f'"{key}": "other", "{key}"', 1).encode()
        assert await rejected(served, endpoint, twice) == f"{key}: duplicate key"

    async def test_duplicate_items_are_rejected(self, served: ServedAgent, endpoint: str) -> None:
        key = {"POST /vm": "vmi-uuid", "POST /port": "id"}.get(endpoint, "interface")
        error = await rejected(served, endpoint, [GOOD[endpoint], GOOD[endpoint]])
        assert error == f"[1].{key}: duplicate value {GOOD[endpoint][key]}"


class TestContradictoryInstancePorts:
    """Values that are valid alone but not together."""

    @pytest.mark.parametrize(
        ("other", "error"),
        [
            (
                {"rx_vlan_id": 5},
                "tx-vlan-id: Invalid request. RX (isolated) vlan set, but TX vlan not set",
            ),
            ({"vn_id": ""}, "vn-id: Invalid VN uuid: a port of type 0 needs a network"),
            ({"vn_id": str(uuid.UUID(int=0))}, "vn-id: Invalid VN uuid: a port of type 0 needs a network"),
            ({"system_name": SAMPLE_VMI}, f"system-name: '{SAMPLE_VMI}' is not a valid device name"),
            ({"system_name": "", "type": 1}, "system-name: '' is not a valid device name"),
        ],
    )
    async def test_are_rejected_with_the_key(self, served: ServedAgent, other: dict[str, Any], error: str) -> None:
        assert await rejected(served, "POST /port", instance_port_of(SAMPLE_VM, SAMPLE_VMI, **other)) == error


class TestInvalidInstancePorts:
    """Values that the vrouter agent accepts or takes for none are errors here."""

    @pytest.mark.parametrize(
        ("other", "error"),
        [
            ({"id": "x"}, "id: 'x' is not a valid uuid (lower case, with dashes, not nil)"),
            ({"instance_id": ""}, "instance-id: '' is not a valid uuid (lower case, with dashes, not nil)"),
            ({"vn_id": "x"}, "vn-id: 'x' is not a valid uuid (lower case, with dashes; empty or nil for none)"),
            (
                {"vm_project_id": "x"},
                "vm-project-id: 'x' is not a valid uuid (lower case, with dashes; empty or nil for none)",
            ),
            ({"ip_address": "fd00::3"}, "ip-address: 'fd00::3' is not a valid IPv4 address (empty or None for none)"),
            ({"ip_address": "1.2.3"}, "ip-address: '1.2.3' is not a valid IPv4 address (empty or None for none)"),
            ({"ip6_address": "1.2.3.4"}, "ip6-address: '1.2.3.4' is not a valid IPv6 address (empty or None for none)"),
            (
                {"ip6_address": "fe80::1%eth0"},
                "ip6-address: 'fe80::1%eth0' is not a valid IPv6 address (empty or None for none)",
            ),
            (
                {"mac_address": "02:15:9b:59:1c"},
                "mac-address: '02:15:9b:59:1c' is not a valid MAC address, use xx:xx:xx:xx:xx:xx format, not all zero",
            ),
            (
                {"mac_address": "00:00:00:00:00:00"},
                f"mac-address: '00:00:00:00:00:00' {NOT_A_MAC}",
            ),
            ({"type": 3}, "type: Invalid enum value 3"),
            ({"type": "0"}, "type: Expected `int`, got `str`"),
            ({"rx_vlan_id": -2}, "rx-vlan-id: Expected `int` >= -1"),
            ({"tx_vlan_id": 65536}, "tx-vlan-id: Expected `int` <= 65535"),
            ({"vhostuser_mode": 256}, "vhostuser-mode: Expected `int` <= 255"),
            ({"link_state": 2}, "link-state: Invalid enum value 2"),
            ({"display_name": "a\x00b"}, "display-name: 'a\\x00b' is not a valid text (printable, at most 4096 bytes)"),
        ],
    )
    async def test_are_rejected_with_the_key(self, served: ServedAgent, other: dict[str, Any], error: str) -> None:
        assert await rejected(served, "POST /port", instance_port_of(SAMPLE_VM, SAMPLE_VMI, **other)) == error


STRANGE_NAMES = ["a/b", "../../etc/passwd", "..", ".", "", "a\x00b", "x" * 4096, "/etc/passwd"]


class TestNames:
    """No name causes a read or write outside the ports directory."""

    @every_endpoint
    @pytest.mark.parametrize("name", STRANGE_NAMES)
    async def test_in_bodies_are_rejected_with_the_key(
        self, served: ServedAgent, endpoint: str, name: str, tmp_path: Path
    ) -> None:
        before = everything(tmp_path)
        key = A_NAME[endpoint]
        error = await rejected(served, endpoint, [GOOD[endpoint] | {key: name}])
        assert error.startswith(f"[0].{key}: {name[:80]!r} is not a valid ")
        assert everything(tmp_path) == before

    @pytest.mark.parametrize(
        "path",
        [
            "/vm-cfg/a/b",
            "/vm-cfg/../../etc/passwd",
            "/vm-cfg/%2e%2e%2fetc%2fpasswd",
            "/vm-cfg/a%00b",
            "/vm-cfg/" + "x" * 4096,
            "/vm-cfg/%ff%fe",
            "/vm/../etc/passwd",
            "/vm/%2e%2e/x",
            "/port/a%00b",
            "/port/" + "x" * 4096,
            "/port/../../etc/passwd",
        ],
    )
    async def test_in_paths_are_not_found(self, served: ServedAgent, path: str) -> None:
        answer = await exchanged(served.address, request("GET", path))
        assert answer.status == 404
        assert answer.error in {"Unknown Request", "{ Not Found }"}


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))
