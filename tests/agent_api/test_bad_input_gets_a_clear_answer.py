"""Whatever a client sends to whichever page: a clear status, JSON that names the culprit, and nothing is done."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent_api.request_bodies import MAX_BODY_SIZE, SMALL_BODY_SIZE, RequestBodyReader
from tests.agent_api.conftest import StartAgent, change_in_progress
from tests.support.agent import ServedAgent, instance_port_of, port_of, until
from tests.support.machines import SAMPLE_VM, SAMPLE_VMI
from tests.support.raw_http import connected, exchanged, request

SUBNET = {"ip-address": "10.1.0.0", "prefix-len": 16}

GOOD: dict[str, Any] = {
    "POST /vm": port_of(SAMPLE_VM, SAMPLE_VMI),
    "POST /port": instance_port_of(SAMPLE_VM, SAMPLE_VMI),
    "POST /gateway": {"interface": "vgw", "routing-instance": "d:p:v:v", "subnets": [SUBNET], "routes": [SUBNET]},
    "DELETE /gateway": {"interface": "vgw"},
}
"""What each page that reads a body takes in an array."""

A_NAME = {"POST /vm": "vm-name", "POST /port": "id", "POST /gateway": "interface", "DELETE /gateway": "interface"}
"""A key of each whose value is or becomes part of a path."""

OPTIONAL = {"vm-id", "vm-ifname", "vm-namespace", "vhostuser-mode", "author", "time"}
REQUIRED = {page: [key for key in good if key not in OPTIONAL] for page, good in GOOD.items()}

NOT_A_MAC = "is not a valid MAC address, use xx:xx:xx:xx:xx:xx format, not all zero"

every_page = pytest.mark.parametrize("page", list(GOOD))


async def refused(served: ServedAgent, page: str, body: Any, *, status: int = 400) -> str:
    """The error; nothing is done by then."""
    method, path = page.split()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await exchanged(served.address, request(method, path, content))
    assert answer.status == status, answer
    assert len(served.agent.ports) == 0
    assert served.agent.gateways.all() == []
    return answer.error


@every_page
class TestBodiesThatAreNotJson:
    """400, and where the parsing ended."""

    @pytest.mark.parametrize("body", [b"", b"[{", b"vm-uuid=x", b"\xff\xfe[]", b"[nan]", b"\x00", b"[{]}", b"[],"])
    async def test_are_said_to_be_none(self, served: ServedAgent, page: str, body: bytes) -> None:
        assert (await refused(served, page, body)).startswith("body: invalid JSON: ")

    @pytest.mark.parametrize("body", [b"[" * 500_000, b'[{"x":' * 150_000])
    async def test_are_said_to_be_nested_too_deeply(self, served: ServedAgent, page: str, body: bytes) -> None:
        error = await refused(served, page, body)
        assert error == "body: nested too deeply" or "Expected" in error

    async def test_are_not_unpacked(self, served: ServedAgent, page: str) -> None:
        method, path = page.split()
        packed = request(method, path, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip")
        answer = await exchanged(served.address, packed)
        assert (answer.status, answer.error[:18]) == (400, "body: invalid JSON")


@every_page
class TestBodiesOfTheWrongType:
    """400 with the key, the type that is wanted and the one that came."""

    @pytest.mark.parametrize("body", [7, "text", None, True, [7], [[]], ["text"], [None]])
    async def test_are_refused(self, served: ServedAgent, page: str, body: object) -> None:
        assert "Expected `" in await refused(served, page, body)

    async def test_are_refused_in_every_key(self, served: ServedAgent, page: str) -> None:
        for key in REQUIRED[page]:
            wrongs: list[object] = [None, {}, 1.5]
            for wrong in wrongs:
                error = await refused(served, page, [GOOD[page] | {key: wrong}])
                assert error.startswith(f"[0].{key}: "), error


@every_page
class TestBodiesThatAreTooLarge:
    """413, and no more of them is read than was allowed."""

    async def test_are_refused_by_their_length(self, served: ServedAgent, page: str) -> None:
        error = await refused(served, page, b" " * (MAX_BODY_SIZE + 1), status=413)
        assert error == f"body: larger than {MAX_BODY_SIZE} bytes"

    async def test_are_refused_when_they_come_in_chunks_without_end(self, served: ServedAgent, page: str) -> None:
        method, path = page.split()
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        async with connected(served.address) as connection:
            await connection.send(f"{method} {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(MAX_BODY_SIZE // 0x10000 + 1):
                await connection.send(chunk)
            answer = await connection.answer()
        assert (answer.status, answer.error) == (413, f"body: larger than {MAX_BODY_SIZE} bytes")


@every_page
class TestBodiesThatNeverEnd:
    """408 after a while, whoever waits with the rest."""

    async def test_are_given_up(self, start_agent: StartAgent, page: str) -> None:
        served = await start_agent(body_reader=RequestBodyReader(timeout=0.05))
        method, path = page.split()
        head = f"{method} {path} HTTP/1.1\r\nHost: agent\r\n"
        for rest in ("Content-Length: 100\r\n\r\n[", "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"):
            answer = await exchanged(served.address, (head + rest).encode())
            assert (answer.status, answer.error) == (408, "body: timed out after 0.05 s")


class TestManyLargeBodies:
    """So many are held at once; others are told to come again, and small ones are read all the same."""

    async def test_are_bounded_in_number(self, start_agent: StartAgent) -> None:
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

    async def test_count_until_what_they_ask_for_is_done(self, start_agent: StartAgent) -> None:
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


@every_page
class TestKeys:
    """Unknown ones are ignored, as upstream does; missing and contradictory ones are errors."""

    async def test_that_nobody_knows_are_no_error(self, served: ServedAgent, page: str) -> None:
        method, path = page.split()
        body = json.dumps([GOOD[page] | {"unknown": [{"x": None}], "": "a number"}])
        long = body.replace('"a number"', "1" * 5000)
        answer = await exchanged(served.address, request(method, path, long.encode()))
        assert (answer.status, answer.json) == (200, {})

    async def test_that_are_missing_are_named(self, served: ServedAgent, page: str) -> None:
        for key in REQUIRED[page]:
            body = {other: value for other, value in GOOD[page].items() if other != key}
            assert await refused(served, page, [body]) == f"[0]: Object missing required field `{key}`"

    async def test_that_come_twice_in_one_object_are_named(self, served: ServedAgent, page: str) -> None:
        text = json.dumps([GOOD[page]])
        key = A_NAME[page]
        twice = text.replace(f'"{key}"', f'"{key}": "other", "{key}"', 1).encode()
        assert await refused(served, page, twice) == f"{key}: duplicate key"

    async def test_that_say_of_one_thing_two_ways_are_named(self, served: ServedAgent, page: str) -> None:
        key = {"POST /vm": "vmi-uuid", "POST /port": "id"}.get(page, "interface")
        error = await refused(served, page, [GOOD[page], GOOD[page]])
        assert error == f"[1].{key}: duplicate value {GOOD[page][key]}"


class TestKeysOfInstancesThatContradictEachOther:
    """Values that are right alone and not together."""

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
    async def test_are_named(self, served: ServedAgent, other: dict[str, Any], error: str) -> None:
        assert await refused(served, "POST /port", instance_port_of(SAMPLE_VM, SAMPLE_VMI, **other)) == error


class TestValuesOfInstances:
    """What upstream takes for none, or for something, is an error here."""

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
    async def test_are_named(self, served: ServedAgent, other: dict[str, Any], error: str) -> None:
        assert await refused(served, "POST /port", instance_port_of(SAMPLE_VM, SAMPLE_VMI, **other)) == error


STRANGE_NAMES = ["a/b", "../../etc/passwd", "..", ".", "", "a\x00b", "x" * 4096, "/etc/passwd"]


class TestNames:
    """Nothing outside its folder is ever read or written, whatever a name looks like."""

    @every_page
    @pytest.mark.parametrize("name", STRANGE_NAMES)
    async def test_in_bodies_are_named(self, served: ServedAgent, page: str, name: str, tmp_path: Path) -> None:
        before = everything(tmp_path)
        key = A_NAME[page]
        error = await refused(served, page, [GOOD[page] | {key: name}])
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
    async def test_in_paths_are_not_there(self, served: ServedAgent, path: str) -> None:
        answer = await exchanged(served.address, request("GET", path))
        assert answer.status == 404
        assert answer.error in {"Unknown Request", "{ Not Found }"}


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))
