"""Held ports: interfaces of deleted virtual machines, until the end of the hold."""

from contrail_config.store import UNPLUGGED_HOLD
from manager.controller.held_ports import HeldPorts


def test_a_port_is_popped_once() -> None:
    ports = HeldPorts(lambda: 0.0)
    ports.add([("vmi-1", "n1"), ("vmi-2", "n2")])
    assert ports.pop("vmi-1") == "n1"
    assert ports.pop("vmi-1") is None
    assert ports.pop("another") is None


def test_a_port_expires_with_its_hold() -> None:
    now = 0.0
    ports = HeldPorts(lambda: now)
    ports.add([("vmi-1", "n1")])
    now = UNPLUGGED_HOLD - 1
    ports.add([("vmi-2", "n1")])
    now = UNPLUGGED_HOLD
    assert ports.pop("vmi-1") is None
    assert ports.pop("vmi-2") == "n1"
    assert len(ports) == 0


def test_a_port_added_again_does_not_delay_the_expiry_of_others() -> None:
    now = 0.0
    ports = HeldPorts(lambda: now)
    ports.add([("vmi-1", "n1"), ("vmi-2", "n1")])
    now = 100.0
    ports.add([("vmi-1", "n1")])
    now = UNPLUGGED_HOLD
    assert ports.pop("vmi-2") is None
    assert list(ports._ports) == ["vmi-1"]
