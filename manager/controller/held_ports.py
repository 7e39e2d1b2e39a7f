"""Interfaces of deleted virtual machines whose ports may still be plugged: their addresses are on a long hold.

Kept so that the hold can be shortened once the node reports the port unplugged, and no longer than the hold lasts. The
report of another node does not count. Interfaces that an earlier manager deleted are loaded from the store. An
interface without an entry has a virtual machine, or is unknown, or nobody knows on which node it was: its hold lasts to
its end. An interface with an entry may exist again, if a source sent its pod again: then shortening affects only its
former addresses.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from contrail_config.store import UNPLUGGED_HOLD


class _Port(NamedTuple):
    network_uuid: str
    node: str | None
    until: float


class HeldPorts:
    """Interfaces by uuid; `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ports: OrderedDict[str, _Port] = OrderedDict()  # ordered by the end of the hold

    def __len__(self) -> int:
        return len(self._ports)

    def add(self, interfaces: Iterable[tuple[str, str]], *, node: str | None) -> None:
        """Adds interfaces of a node, each with its network's uuid, whose virtual machine was deleted now or recently.

        `node` is None if there is only one.
        """
        self._expire()
        until = self._clock() + UNPLUGGED_HOLD
        for vmi_uuid, network_uuid in interfaces:
            self._ports[vmi_uuid] = _Port(network_uuid, node, until)
            self._ports.move_to_end(vmi_uuid)  # assignment keeps the position of an existing key

    def pop(self, vmi_uuid: str, *, node: str) -> str | None:
        """Removes the interface and returns its network's uuid; None if it is not here, or of another node."""
        self._expire()
        port = self._ports.get(vmi_uuid)
        if port is None or port.node not in (None, node):
            return None
        del self._ports[vmi_uuid]
        return port.network_uuid

    def _expire(self) -> None:
        now = self._clock()
        while self._ports and next(iter(self._ports.values())).until <= now:
            self._ports.popitem(last=False)
