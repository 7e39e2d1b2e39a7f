"""`/gateway`: simple gateways are added, replaced, deleted and listed by interface, and survive a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_api.gateways.table import GatewayTable
from tests.support.served_agent import ServedAgent


def gateway(interface: str = "vgw1", **other: Any) -> dict[str, Any]:
    body = {
        "interface": interface,
        "routing-instance": "default-domain:admin:vn1:vn1",
        "subnets": [{"ip-address": "1.2.3.0", "prefix-len": 24}, {"ip-address": "7.8.9.0", "prefix-len": 24}],
        "routes": [{"ip-address": "0.0.0.0", "prefix-len": 0}],
    }
    return body | {key.replace("_", "-"): value for key, value in other.items()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "ports"


@pytest.fixture
async def restarted(root: Path) -> GatewayTable:
    """The table of a later process, not loaded yet."""
    return GatewayTable(str(root))


async def add(served: ServedAgent, *gateways: dict[str, Any]) -> None:
    async with served.tcp.post("/gateway", json=gateways) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def delete(served: ServedAgent, *interfaces: str) -> None:
    async with served.tcp.delete("/gateway", json=[{"interface": interface} for interface in interfaces]) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def listed(served: ServedAgent) -> list[dict[str, Any]]:
    async with served.tcp.get("/gateway") as answer:
        assert answer.status == 200
        content: list[dict[str, Any]] = await answer.json()
    return content


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def test_the_list_is_empty_at_first(served: ServedAgent) -> None:
    assert await listed(served) == []


async def test_gateways_are_listed_as_posted_by_interface(served: ServedAgent) -> None:
    await add(served, gateway("vgw2"), gateway("vgw1", routes=[], subnets=[]))
    assert await listed(served) == [gateway("vgw1", routes=[], subnets=[]), gateway("vgw2")]


async def test_adding_a_gateway_again_replaces_it(served: ServedAgent) -> None:
    await add(served, gateway())
    await add(served, gateway(routing_instance="other"))
    assert await listed(served) == [gateway(routing_instance="other")]


async def test_deleting_a_gateway_removes_its_file(served: ServedAgent, root: Path) -> None:
    await add(served, gateway("vgw1"), gateway("vgw2"))
    await delete(served, "vgw1")
    assert await listed(served) == [gateway("vgw2")]
    assert files(root) == ["gateway/vgw2"]
    await delete(served, "vgw2")
    assert files(root) == []


async def test_deleting_missing_gateways_or_none_is_no_error(served: ServedAgent) -> None:
    await delete(served, "vgw1")
    await delete(served)
    await add(served)


async def test_gateways_survive_a_restart(served: ServedAgent, restarted: GatewayTable) -> None:
    await add(served, gateway("vgw1"), gateway("vgw2"))
    await restarted.load()
    assert restarted.all() == served.agent.gateways.all()


async def test_the_longest_gateways_survive_a_restart(served: ServedAgent, restarted: GatewayTable) -> None:
    many = [{"ip-address": "255.255.255.255", "prefix-len": 32}] * 256
    await add(served, gateway(routing_instance="ü" * 2048, subnets=many, routes=many))
    await restarted.load()
    assert restarted.all() == served.agent.gateways.all()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty"),
        ("{", "truncated"),
        (json.dumps(gateway("vgw2")), "belongs to vgw2"),
        (json.dumps(gateway("vgw1", routing_instance="")), "routing-instance: '' is not a valid text"),
        (
            json.dumps(gateway(routes=[{"ip-address": "::", "prefix-len": 0}])),
            "routes[0].ip-address: '::' is not a valid IPv4 address",
        ),
    ],
)
async def test_an_invalid_file_is_quarantined_and_logged(
    root: Path, restarted: GatewayTable, content: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "gateway").mkdir(parents=True)
    (root / "gateway" / "vgw1").write_text(content)
    await restarted.load()
    assert restarted.all() == []
    assert files(root) == ["corrupt/gateway/vgw1.corrupt"]
    assert reason in caplog.text


async def test_staged_files_of_a_killed_process_are_removed(root: Path, restarted: GatewayTable) -> None:
    (root / "unfinished" / "gateways").mkdir(parents=True)
    (root / "unfinished" / "gateways" / "vgw1").write_text("{")
    await restarted.load()
    assert files(root) == []


async def test_a_disk_error_is_500_and_adds_nothing(served: ServedAgent, root: Path) -> None:
    await asyncio.to_thread(block, root / "gateway")
    async with served.tcp.post("/gateway", json=[gateway()]) as answer:
        assert answer.status == 500
        assert (await answer.json())["error"].endswith("/gateway: File exists")
    assert await listed(served) == []


def block(place: Path) -> None:
    place.rmdir()
    place.write_text("no folder")


BAD_BODIES: list[tuple[object, str]] = [
    ({}, "Expected `array`, got `object`"),
    (gateway(), "Expected `array`, got `object`"),
    (["vgw1"], "[0]: Expected `object`, got `str`"),
    ([{"interface": "vgw1"}], "[0]: Object missing required field `routing-instance`"),
    ([gateway("a/b")], "[0].interface: 'a/b' is not a valid device name"),
    ([gateway("..")], "[0].interface: '..' is not a valid device name"),
    ([gateway("sixteen-letters!")], "[0].interface: 'sixteen-letters!' is not a valid device name"),
    ([gateway(), gateway()], "[1].interface: duplicate value vgw1"),
    ([gateway(routing_instance=7)], "[0].routing-instance: Expected `str`, got `int`"),
    ([gateway(subnets="1.2.3.0/24")], "[0].subnets: Expected `array`, got `str`"),
    ([gateway(subnets=[{"ip-address": "1.2.3.0"}])], "[0].subnets[0]: Object missing required field `prefix-len`"),
    (
        [gateway(subnets=[{"ip-address": "1.2.3.0", "prefix-len": 33}])],
        "[0].subnets[0].prefix-len: Expected `int` <= 32",
    ),
    (
        [gateway(routes=[{"ip-address": "0.0.0.0", "prefix-len": 0}, {"ip-address": "x", "prefix-len": 0}])],
        "[0].routes[1].ip-address: 'x' is not a valid IPv4 address",
    ),
    (
        [gateway(routes=[{"ip-address": "0.0.0.0", "prefix-len": 0}] * 257)],
        "[0].routes: Expected `array` of length <= 256",
    ),
]


@pytest.mark.parametrize(("body", "error"), BAD_BODIES)
async def test_an_invalid_body_names_the_field_and_adds_nothing(
    served: ServedAgent, root: Path, body: object, error: str
) -> None:
    async with served.tcp.post("/gateway", json=body) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": error})
    assert files(root) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"interface": "vgw1"}, "Expected `array`, got `object`"),
        ([{}], "[0]: Object missing required field `interface`"),
        ([{"interface": "vgw1"}, {"interface": "../vgw1"}], "[1].interface: '../vgw1' is not a valid device name"),
        ([{"interface": "vgw1"}, {"interface": "vgw1"}], "[1].interface: duplicate value vgw1"),
    ],
)
async def test_an_invalid_delete_names_the_field_and_deletes_nothing(
    served: ServedAgent, body: object, error: str
) -> None:
    await add(served, gateway())
    async with served.tcp.delete("/gateway", json=body) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": error})
    assert await listed(served) == [gateway()]
