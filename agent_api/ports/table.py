"""Which ports are plugged, and whose they are.

A port belongs to the container of its newest POST. A DELETE that names a container frees only what that container
owns, so the late teardown of an old sandbox never unplugs the ports of the new one of the same pod.

Changes come one after the other: what a change does is decided only when the one before is on disk, and it is in the
table, and acknowledged, only after its files are in place. A change that was begun is finished even if the client
hangs up. The files are written in a thread, since a slow disk must not stop the answers to everybody else.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import NamedTuple

from agent_api.errors import NotReadyError, PortsError
from agent_api.ports.directory import PortDirectory
from agent_api.ports.port import Port
from contrail_service.logs import log_about

log = logging.getLogger(__name__)

UnpluggedCallback = Callable[[Sequence[str]], None]
"""Told the uuids of interfaces whose ports were freed, once it is on disk; called on the loop, must not raise."""


class _Change(NamedTuple):
    plug: Sequence[Port]
    free: Sequence[Port]


class PortTable:
    """All ports of this node."""

    def __init__(self, directory: PortDirectory) -> None:
        self._directory = directory
        self._ports: dict[str, Port] = {}
        self._of_machine: dict[str, dict[str, Port]] = {}
        self._callbacks: list[UnpluggedCallback] = []
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self.loaded = False

    def __len__(self) -> int:
        """The number of plugged ports."""
        return len(self._ports)

    async def load(self) -> None:
        """Takes the ports that an earlier process kept; no device is asked for. Raises PortsError."""
        self._enter(await asyncio.to_thread(self._directory.load))
        self.loaded = True
        log.info("%d ports reloaded", len(self._ports))

    def on_unplugged(self, callback: UnpluggedCallback) -> None:
        """Has the callback told of every port that is freed from now on."""
        self._callbacks.append(callback)

    def all(self) -> list[Port]:
        """Returns all ports."""
        return list(self._ports.values())

    def of_machine(self, vm_uuid: str) -> Mapping[str, Port]:
        """Returns the ports of a machine by the uuid of their interface."""
        return self._of_machine.get(vm_uuid, {})

    async def plug(self, ports: Sequence[Port]) -> None:
        """Takes ports, all or none: each belongs to its container from now on. Raises PortsError, NotReadyError."""
        await self._change(lambda: _Change(plug=ports, free=()))

    async def unplug(self, vm_uuid: str, *, vmi_uuid: str | None = None, container: str | None = None) -> None:
        """Frees the ports of a machine: of one interface if it is given, and only a container's own if one is given.

        Raises PortsError, NotReadyError.
        """

        def owned() -> _Change:
            ports = self.of_machine(vm_uuid).values()
            wanted = (port for port in ports if vmi_uuid in (None, port.vmi_uuid))
            return _Change(plug=(), free=[port for port in wanted if container in (None, port.vm_id)])

        await self._change(owned)

    async def drop(self, ports: Iterable[Port]) -> None:
        """Frees those of the ports that no later POST took over. Raises PortsError, NotReadyError."""
        await self._change(
            lambda: _Change(plug=(), free=[port for port in ports if self._ports.get(port.vmi_uuid) is port])
        )

    async def _change(self, decide: Callable[[], _Change]) -> None:
        if not self.loaded:
            raise NotReadyError("the ports are not reloaded yet")
        await self._to_its_end(self._make(decide))

    async def _to_its_end(self, change: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(change)
        self._under_way.add(task)  # the loop itself keeps tasks by weak references alone
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    async def _make(self, decide: Callable[[], _Change]) -> None:
        async with self._one_at_a_time:
            change = decide()
            if not change.plug and not change.free:
                return
            moved = [old for port in change.plug if (old := self._kept_elsewhere(port)) is not None]
            await self._keep(change.plug, remove=[*change.free, *moved])
            self._leave([*change.free, *moved])
            self._enter(change.plug)
        self._tell(change)

    def _kept_elsewhere(self, port: Port) -> Port | None:
        """Returns the interface's older port if it is of another machine or name, so kept in another place."""
        old = self._ports.get(port.vmi_uuid)
        if old is None or (old.vm_uuid, old.vm_name) == (port.vm_uuid, port.vm_name):
            return None
        return old

    async def _keep(self, plug: Sequence[Port], *, remove: Sequence[Port]) -> None:
        try:
            await asyncio.to_thread(self._directory.change, write=plug, remove=remove)
        except PortsError as error:
            log.error("nothing plugged, nothing freed: %s", error)  # noqa: TRY400 - the message says all
            raise

    def _enter(self, ports: Iterable[Port]) -> None:
        for port in ports:
            self._ports[port.vmi_uuid] = port
            self._of_machine.setdefault(port.vm_uuid, {})[port.vmi_uuid] = port

    def _leave(self, ports: Iterable[Port]) -> None:
        for port in ports:
            del self._ports[port.vmi_uuid]
            of_machine = self._of_machine[port.vm_uuid]
            del of_machine[port.vmi_uuid]
            if not of_machine:
                del self._of_machine[port.vm_uuid]

    def _tell(self, change: _Change) -> None:
        for port in change.plug:
            with log_about(**_about(port)):
                log.info("plugged, device %s", port.host_ifname)
        for port in change.free:
            with log_about(**_about(port)):
                log.info("freed, device %s", port.host_ifname)
        if change.free:
            for callback in self._callbacks:
                callback([port.vmi_uuid for port in change.free])


def _about(port: Port) -> dict[str, str]:
    """Whom a line of the log is about; the machine's name is `<cluster>__<namespace>__<pod>`."""
    pod = "/".join(port.vm_name.split("__")[1:]) or port.vm_name
    return {"pod": pod, "container": port.vm_id, "vmi": port.vmi_uuid}
