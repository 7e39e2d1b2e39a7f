"""Held ports: interfaces of deleted virtual machines, until the end of the hold."""

from contrail_config.store import UNPLUGGED_HOLD
from manager.controller.held_ports import HeldPorts

NODE = "worker-1"


def test_a_port_is_popped_once() -> None:
    ports = HeldPorts(lambda: 0.0)
    ports.add([("vmi-1", "n1"), ("vmi-2", "n2")], node=NODE)
    assert ports.pop("vmi-1", node=NODE) == "n1"
    assert ports.pop("vmi-1", node=NODE) is None
    assert ports.pop("another", node=NODE) is None


def test_another_node_pops_no_port() -> None:
    ports = HeldPorts(lambda: 0.0)
    ports.add([("vmi-1", "n1")], node=NODE)
    assert ports.pop("vmi-1", node="another") is None
    assert ports.pop("vmi-1", node=NODE) == "n1"


def test_any_node_pops_a_port_of_an_unknown_node() -> None:
    ports = HeldPorts(lambda: 0.0)
    ports.add([("vmi-1", "n1")], node=None)
    assert ports.pop("vmi-1", node=NODE) == "n1"


def test_a_port_expires_with_its_hold() -> None:
    now = 0.0
    ports = HeldPorts(lambda: now)
    ports.add([("vmi-1", "n1")], node=NODE)
    now = UNPLUGGED_HOLD - 1
    ports.add([("vmi-2", "n1")], node=NODE)
    now = UNPLUGGED_HOLD
    assert ports.pop("vmi-1", node=NODE) is None
    assert ports.pop("vmi-2", node=NODE) == "n1"
    assert len(ports) == 0


def test_a_port_added_again_does_not_delay_the_expiry_of_others() -> None:
    now = 0.0
    ports = HeldPorts(lambda: now)
    ports.add([("vmi-1", "n1"), ("vmi-2", "n1")], node=NODE)
    now = 100.0
    ports.add([("vmi-1", "n1")], node=NODE)
    now = UNPLUGGED_HOLD
    assert ports.pop("vmi-2", node=NODE) is None
    assert list(ports._ports) == ["vmi-1"]
