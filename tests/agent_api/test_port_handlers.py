"""`/port`: instance ports, posted individually or as an array, and served once their configuration exists."""

import uuid
from typing import Any

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.agent_api.conftest import WaitForSync
from tests.support.served_agent import ServedAgent, instance_port_of, port_of
from tests.support.stored_ports import instance_ports
from tests.support.virtual_machines import (
    SAMPLE_VM,
    SAMPLE_VMI,
    SAMPLE_VN,
    left_interface,
    make_virtual_machine,
    sample_interface,
)

OTHER_VMI = left_interface(SAMPLE_VM, 1).uuid
PROJECT = "9970147c-33b1-4bf7-8944-8968e708d430"


async def plug(served: ServedAgent, body: Any) -> None:
    async with served.tcp.post("/port", json=body) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def get(served: ServedAgent, path: str = f"/port/{SAMPLE_VMI}") -> Any:
    """Returns the response, or None for the vrouter agent's 404."""
    async with served.tcp.get(path) as answer:
        content = await answer.json()
        if answer.status == 404:
            assert content == {"error": "{ Not Found }"}
            return None
        assert answer.status == 200
        return content


class TestGet:
    """One object, not a list; complete or 404."""

    async def test_returns_posted_and_configured_values_in_the_vrouter_agents_order(
        self, served: ServedAgent, virtual_machine: VirtualMachine
    ) -> None:
        await plug(
            served,
            instance_port_of(
                SAMPLE_VM, SAMPLE_VMI, vm_project_id=PROJECT, rx_vlan_id=5, tx_vlan_id=6, vhostuser_mode=1
            ),
        )
        item = await get(served)
        assert item.pop("time")
        assert list(item.items()) == [
            ("id", SAMPLE_VMI),
            ("instance-id", SAMPLE_VM),
            ("vn-id", SAMPLE_VN),
            ("vm-project-id", PROJECT),
            ("mac-address", "02:15:9b:59:1c:e5"),
            ("system-name", "tap159b591c-e5"),
            ("rx-vlan-id", 5),
            ("tx-vlan-id", 6),
            ("vhostuser-mode", 1),
            ("ip-address", "10.47.255.251"),
            ("plen", 12),
            ("dns-server", "10.47.255.253"),
            ("gateway", "10.47.255.254"),
            ("v6-ip-address", "fd00::5"),
            ("v6-plen", 64),
            ("v6-dns-server", "fd00::2"),
            ("v6-gateway", "fd00::1"),
            ("author", "contrail-agent"),
        ]

    async def test_is_404_until_the_port_is_plugged(self, served: ServedAgent, virtual_machine: VirtualMachine) -> None:
        assert await get(served) is None

    async def test_is_404_until_virtual_machine_and_interface_are_known(
        self, store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
    ) -> None:
        await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        assert await get(served) is None
        await store.put_virtual_machine(make_virtual_machine(uid=SAMPLE_VM, interfaces=()))
        await wait_for_sync()
        assert await get(served) is None
        await store.put_virtual_machine(make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(),)))
        await wait_for_sync()
        assert await get(served) is not None

    async def test_is_404_once_the_virtual_machine_is_deleted(
        self, store: SqliteStore, served: ServedAgent, virtual_machine: VirtualMachine, wait_for_sync: WaitForSync
    ) -> None:
        await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        await store.delete_virtual_machine(virtual_machine.uuid)
        await wait_for_sync()
        assert await get(served) is None

    async def test_returns_container_ports_too(self, served: ServedAgent, virtual_machine: VirtualMachine) -> None:
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
        item = await get(served)
        assert (item["id"], item["system-name"], item["rx-vlan-id"]) == (SAMPLE_VMI, "tapeth0-aaaaaa", 65535)

    async def test_of_the_virtual_machine_returns_instance_ports_too(
        self, served: ServedAgent, virtual_machine: VirtualMachine
    ) -> None:
        await plug(served, [instance_port_of(SAMPLE_VM, vmi_uuid) for vmi_uuid in (SAMPLE_VMI, OTHER_VMI)])
        assert [item["id"] for item in await get(served, f"/vm/{SAMPLE_VM}")] == [SAMPLE_VMI, OTHER_VMI]


class TestPost:
    """Values that mean none are normalized, and the latest POST wins."""

    @pytest.mark.parametrize(
        ("posted", "attribute", "stored"),
        [
            ({"rx_vlan_id": -1, "tx_vlan_id": -1}, "rx_vlan_id", 65535),
            ({"rx_vlan_id": -1, "tx_vlan_id": 7}, "tx_vlan_id", 7),
            ({"ip_address": ""}, "ip_address", "0.0.0.0"),
            ({"ip_address": "None"}, "ip_address", "0.0.0.0"),
            ({"ip_address": "11.0.0.3"}, "ip_address", "11.0.0.3"),
            ({"ip6_address": ""}, "ip6_address", "::"),
            ({"ip6_address": "None"}, "ip6_address", "::"),
            ({"ip6_address": "FD00:0::3"}, "ip6_address", "fd00::3"),
            ({"vm_project_id": ""}, "project_uuid", str(uuid.UUID(int=0))),
            ({"vn_id": "", "type": 1}, "vn_uuid", str(uuid.UUID(int=0))),
            ({"type": 2}, "link_state", 0),
            ({"type": 2, "link_state": 1}, "link_state", 1),
            ({"type": 2, "system_name": OTHER_VMI}, "host_ifname", OTHER_VMI),
            ({"display_name": ""}, "vm_name", ""),
            ({"display_name": "a/b ü .."}, "vm_name", "a/b ü .."),
        ],
    )
    async def test_normalizes_values_that_mean_none(
        self, served: ServedAgent, posted: dict[str, Any], attribute: str, stored: object
    ) -> None:
        await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI, **posted))
        (port,) = instance_ports(served.agent.ports)
        assert getattr(port, attribute) == stored

    async def test_optional_keys_have_defaults(self, served: ServedAgent) -> None:
        body = instance_port_of(SAMPLE_VM, SAMPLE_VMI)
        for key in ("vhostuser-mode", "author", "time"):
            del body[key]
        await plug(served, body)
        (port,) = instance_ports(served.agent.ports)
        assert port.vhostuser_mode == 0

    async def test_null_in_an_optional_key_is_taken_as_absent(self, served: ServedAgent) -> None:
        """`vrouter-port-control` posts `"vhostuser-mode": null` unless it is called with a mode."""
        for kind in (0, 2):
            await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI, type=kind, vhostuser_mode=None, link_state=None))
            (port,) = instance_ports(served.agent.ports)
            assert (port.kind, port.vhostuser_mode, port.link_state or 0) == (kind, 0, 0)

    async def test_accepts_an_array(self, served: ServedAgent) -> None:
        vmi_uuids = {str(uuid.uuid4()) for _ in range(3)}
        await plug(served, [instance_port_of(SAMPLE_VM, vmi_uuid) for vmi_uuid in vmi_uuids])
        assert {port.vmi_uuid for port in served.agent.ports.all()} == vmi_uuids

    async def test_rejects_an_array_with_one_invalid_port_as_a_whole(self, served: ServedAgent) -> None:
        body = [instance_port_of(SAMPLE_VM, SAMPLE_VMI), instance_port_of(SAMPLE_VM, OTHER_VMI, type=3)]
        async with served.tcp.post("/port", json=body) as answer:
            assert (answer.status, await answer.json()) == (400, {"error": "[1].type: Invalid enum value 3"})
        assert len(served.agent.ports) == 0

    async def test_accepts_an_empty_array(self, served: ServedAgent) -> None:
        await plug(served, [])
        assert len(served.agent.ports) == 0

    async def test_moves_an_interface_to_another_virtual_machine(self, served: ServedAgent) -> None:
        other = str(uuid.uuid4())
        await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        await plug(served, instance_port_of(other, SAMPLE_VMI))
        assert (served.agent.is_plugged(SAMPLE_VM), served.agent.is_plugged(other)) == (False, True)
        assert len(served.agent.ports) == 1


class TestDelete:
    """Always 200; unplugs instance ports only."""

    async def test_unplugs_the_port_and_notifies(self, served: ServedAgent, virtual_machine: VirtualMachine) -> None:
        unplugged: list[str] = []
        served.agent.on_unplugged(unplugged.extend)
        await plug(served, [instance_port_of(SAMPLE_VM, vmi_uuid) for vmi_uuid in (SAMPLE_VMI, OTHER_VMI)])
        await delete(served, SAMPLE_VMI)
        assert unplugged == [SAMPLE_VMI]
        assert await get(served) is None
        assert served.agent.is_plugged(SAMPLE_VM)

    async def test_of_a_missing_port_is_no_error(self, served: ServedAgent) -> None:
        await delete(served, SAMPLE_VMI)

    async def test_leaves_container_ports_plugged(self, served: ServedAgent) -> None:
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
        await delete(served, SAMPLE_VMI)
        assert served.agent.is_plugged(SAMPLE_VM)

    async def test_of_a_virtual_machine_leaves_instance_ports_plugged(self, served: ServedAgent) -> None:
        await plug(served, instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        async with served.tcp.delete(f"/vm/{SAMPLE_VM}") as answer:
            assert answer.status == 200
        assert served.agent.is_plugged(SAMPLE_VM)


async def delete(served: ServedAgent, vmi_uuid: str) -> None:
    async with served.tcp.delete(f"/port/{vmi_uuid}") as answer:
        assert (answer.status, await answer.json()) == (200, {})
