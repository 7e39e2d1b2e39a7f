"""`GET /vm/<vm-uuid>[/<vmi-uuid>]`: the vrouter agent's sample response, complete or 404."""

import re
import time
import uuid

import pytest

from agent_api.field_types import format_vrouter_time
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.agent_api.conftest import WaitForSync
from tests.support.served_agent import ServedAgent, port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, make_virtual_machine

UPSTREAM_SAMPLE = {
    "id": "159b591c-e57e-11f1-b951-02fc00000001",
    "instance-id": "aaaaaaaa-0000-4000-8000-000000000001",
    "vn-id": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
    "vm-project-id": "00000000-0000-0000-0000-000000000000",
    "mac-address": "02:15:9b:59:1c:e5",
    "system-name": "tapeth0-aaaaaa",
    "rx-vlan-id": 65535,
    "tx-vlan-id": 65535,
    "vhostuser-mode": 0,
    "ip-address": "10.47.255.251",
    "plen": 12,
    "dns-server": "10.47.255.253",
    "gateway": "10.47.255.254",
    "v6-ip-address": "fd00::5",
    "v6-plen": 64,  # our addition: the vrouter agent has no prefix length here
    "v6-dns-server": "fd00::2",
    "v6-gateway": "fd00::1",
}


async def plug(served: ServedAgent, *vmi_uuids: str) -> None:
    async with served.tcp.post("/vm", json=[port_of(SAMPLE_VM, vmi_uuid) for vmi_uuid in vmi_uuids]) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def test_the_sample_is_answered_key_by_key_in_upstreams_order(
    served: ServedAgent, virtual_machine: VirtualMachine
) -> None:
    await plug(served, SAMPLE_VMI)
    async with served.tcp.get(f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}") as answer:
        (item,) = await answer.json()
    assert re.fullmatch(r"\d{6}:\d\d:\d\d\.\d{6}", item.pop("time"))
    assert item.pop("author") == "contrail-agent"
    assert item.popitem() == ("vm-ifname", "eth0")  # a key of this agent only, after all others
    assert list(item.items()) == list(UPSTREAM_SAMPLE.items())


async def test_all_interfaces_are_in_index_order(served: ServedAgent, virtual_machine: VirtualMachine) -> None:
    in_order = [interface.uuid for interface in virtual_machine.interfaces]
    await plug(served, *reversed(in_order))
    async with served.tcp.get(f"/vm/{SAMPLE_VM}") as answer:
        assert [item["id"] for item in await answer.json()] == in_order


async def test_the_virtual_machine_is_404_until_all_are_plugged_but_each_plugged_one_is_found(
    served: ServedAgent, virtual_machine: VirtualMachine
) -> None:
    await plug(served, SAMPLE_VMI)
    expected = {"": 404, f"/{SAMPLE_VMI}": 200, f"/{virtual_machine.interfaces[1].uuid}": 404, f"/{uuid.uuid4()}": 404}
    for path, status in expected.items():
        async with served.tcp.get(f"/vm/{SAMPLE_VM}{path}") as answer:
            assert answer.status == status, path
            if status == 404:
                assert await answer.json() == {"error": "{ Not Found }"}


async def test_a_port_without_virtual_machine_is_not_found(served: ServedAgent) -> None:
    await plug(served, SAMPLE_VMI)
    for path in (f"/vm/{SAMPLE_VM}", f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}"):
        async with served.tcp.get(path) as answer:
            assert answer.status == 404


async def test_an_interface_is_found_only_under_its_own_virtual_machine(
    store: SqliteStore, served: ServedAgent, virtual_machine: VirtualMachine, wait_for_sync: WaitForSync
) -> None:
    other = make_virtual_machine("p2")
    await store.put_virtual_machine(other)
    await wait_for_sync()
    await plug(served, SAMPLE_VMI)
    async with served.tcp.get(f"/vm/{other.uuid}/{SAMPLE_VMI}") as answer:
        assert answer.status == 404


async def test_a_port_is_found_immediately_after_its_post(served: ServedAgent, virtual_machine: VirtualMachine) -> None:
    for device in ("tap-1", "tap-2", "tap-3"):
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI, host_ifname=device))
        async with served.tcp.get(f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}") as answer:
            (item,) = await answer.json()
        assert item["system-name"] == device


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (426404 * 3600 + 56 * 60 + 19.863169, "426404:56:19.863169"),
        (0.0, "00:00:00.000000"),
        (59.9999996, "00:01:00.000000"),
    ],
)
def test_time_is_hours_minutes_seconds_since_the_epoch(seconds: float, text: str) -> None:
    assert format_vrouter_time(seconds) == text


def test_time_of_a_response_is_now() -> None:
    hours, minutes, _ = format_vrouter_time(time.time()).split(":")
    assert abs(int(hours) * 60 + int(minutes) - time.time() / 60) < 2
