"""Virtual routers as nodes: name, and the address to which other nodes send packets."""

import pytest

from contrail_config.vnc.mapping.routers import VirtualRouter, read_router


def router(address: object) -> dict[str, object]:
    name = ["default-global-system-config", "node-1"]
    return {"uuid": "u", "fq_name": name, **({} if address is None else {"virtual_router_ip_address": address})}


@pytest.mark.parametrize(("address", "read"), [("192.0.2.1", "192.0.2.1"), ("FD00:0::1", "fd00::1")])
def test_its_address_is_canonical(address: str, read: str) -> None:
    assert read_router(router(address)) == VirtualRouter("node-1", (read,))


@pytest.mark.parametrize(
    "address",
    [None, "", 7, "node-1", "127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.5", "ff02::1", "169.254.1.1", "fe80::1"],
)
def test_what_other_nodes_cannot_reach_is_no_address_of_it(address: object) -> None:
    assert read_router(router(address)).addresses == ()
