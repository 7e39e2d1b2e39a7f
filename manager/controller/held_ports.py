"""Interfaces of deleted machines whose ports the node has still to unplug: their addresses are held back for long.

Kept so that the hold can be shortened once the node reports the port unplugged, and for no longer than the hold lasts;
what an earlier manager held back is known from the store. An interface that is not here belongs to a machine that
lives, or to none. One that is here may live again, as the same pod's: only what it had is let go then.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from contrail_config.store import UNPLUGGED_HOLD


class _Port(NamedTuple):
    network_uuid: str
    until: float


class HeldPorts:
    """Interfaces by uuid; `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ports: OrderedDict[str, _Port] = OrderedDict()  # in the order in which their holds end

    def add(self, interfaces: Iterable[tuple[str, str]]) -> None:
        """Notes interfaces, each with the uuid of its network, whose machine was deleted just now, or not long ago."""
        self._drop_expired()
        until = self._clock() + UNPLUGGED_HOLD
        for vmi_uuid, network_uuid in interfaces:
            self._ports[vmi_uuid] = _Port(network_uuid, until)
            self._ports.move_to_end(vmi_uuid)

    def take(self, vmi_uuid: str) -> str | None:
        """Removes the interface and returns its network's uuid; None if it is not here."""
        self._drop_expired()
        port = self._ports.pop(vmi_uuid, None)
        return None if port is None else port.network_uuid

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._ports and next(iter(self._ports.values())).until <= now:
            self._ports.popitem(last=False)
