"""Cache of the virtual routers, for readers that connect nodes."""

from collections.abc import Callable, Collection, Mapping

from contrail_config.vnc.mapping.routers import VirtualRouter

OnRouter = Callable[[str, tuple[str, ...] | None], None]
"""Called with the name of a virtual router and its addresses; None if there is none of this name any more."""


class CachedRouters:
    """Virtual routers by uuid."""

    def __init__(self) -> None:
        self._routers: dict[str, VirtualRouter] = {}
        self._callbacks: list[OnRouter] = []

    def on_change(self, callback: OnRouter) -> None:
        """Calls back with each difference from now on."""
        self._callbacks.append(callback)

    def saw(self, uuid: str, current: VirtualRouter | None) -> None:
        """Applies an event of the server; None is a deletion."""
        before = self._routers.pop(uuid, None)
        if current is not None:
            self._routers[uuid] = current
        if before is not None and (current is None or current.name != before.name):
            self._report(before.name, None)
        if current is not None and current != before:
            self._report(current.name, current.addresses)

    def listed(self, found: Mapping[str, VirtualRouter], *, newer: Collection[str] = ()) -> None:
        """Applies a list of all, but those that are `newer` here."""
        for uuid in {*self._routers, *found}.difference(newer):
            self.saw(uuid, found.get(uuid))

    def _report(self, name: str, addresses: tuple[str, ...] | None) -> None:
        for callback in self._callbacks:
            callback(name, addresses)
