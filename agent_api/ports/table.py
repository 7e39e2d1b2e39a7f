"""Which ports are plugged, and whose they are.

An interface has one port, that of its newest POST, of whichever kind. A container's port belongs to the container of
that POST: a DELETE that names a container frees only what that container owns, so the late teardown of an old sandbox
never unplugs the ports of the new one of the same pod.

A change is in the table, and acknowledged, only after its files are in place. The files are written in a thread, since
a slow disk must not stop the answers to everybody else; `..._at_once` write them without, where the disk is quick and
no other change is under way, and else do nothing.

Each port bears the version in which it was plugged last, so that those can be told which no client has plugged again
since a version began.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from agent_api.changes import Changes
from agent_api.errors import LinkStateError, PortsError
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.disk import DiskPace
from agent_api.ports.instance import REMOTE, InstancePort
from agent_api.ports.port import Port
from contrail_service.logs import log_context

log = logging.getLogger(__name__)

_LOG_PAUSE = 0.02  # seconds: who waits for the answer may have no other processor to go on than this one

UnpluggedCallback = Callable[[Sequence[Port]], None]
"""Told the ports that were freed, once it is on disk; called on the loop, must not raise."""


class _Change(NamedTuple):
    plug: Sequence[Port] = ()
    free: Sequence[Port] = ()
    alter: Sequence[Port] = ()  # ports that stay plugged and are kept otherwise than before


class PortTable:
    """All ports of this node."""

    def __init__(self, directory: PortDirectory) -> None:
        self._directory = directory
        self._ports: dict[str, Port] = {}
        self._of_machine: dict[str, dict[str, Port]] = {}
        self._version = 0
        self._plugged_in: dict[str, int] = {}  # version, by interface
        self._callbacks: list[UnpluggedCallback] = []
        self._changes = Changes()
        self._disk = DiskPace()

    def __len__(self) -> int:
        """The number of plugged ports."""
        return len(self._ports)

    @property
    def loaded(self) -> bool:
        """Whether the ports of before are there."""
        return self._changes.loaded

    async def load(self) -> None:
        """Takes the ports that an earlier process kept; no device is asked for. Raises PortsError."""
        self._enter(await asyncio.to_thread(self._directory.load))
        self._changes.loaded = True
        log.info("%d ports reloaded", len(self._ports))

    def on_unplugged(self, callback: UnpluggedCallback) -> None:
        """Has the callback told of every port that is freed from now on."""
        self._callbacks.append(callback)

    def all(self) -> list[Port]:
        """Returns all ports."""
        return list(self._ports.values())

    def of_interface(self, vmi_uuid: str) -> Port | None:
        """Returns the port of an interface, None if it is not plugged."""
        return self._ports.get(vmi_uuid)

    def of_machine(self, vm_uuid: str) -> Mapping[str, Port]:
        """Returns the ports of a machine by the uuid of their interface."""
        return self._of_machine.get(vm_uuid, {})

    async def plug(self, ports: Sequence[Port]) -> None:
        """Takes ports, all or none: each belongs to who posted it from now on. Raises PortsError, NotReadyError."""
        await self._change(lambda: self._plugging(ports))

    def plug_at_once(self, ports: Sequence[Port]) -> bool:
        """Does as `plug` if that takes no waiting, and tells whether it did. Raises PortsError."""
        return self._change_at_once(lambda: self._plugging(ports))

    async def unplug(self, vm_uuid: str, *, vmi_uuid: str | None = None, container: str | None = None) -> None:
        """Frees the containers' ports of a machine: of one interface if it is given, of one container if it is given.

        Raises PortsError, NotReadyError.
        """
        await self._change(lambda: self._freeing(vm_uuid, vmi_uuid, container))

    def unplug_at_once(self, vm_uuid: str, *, vmi_uuid: str | None, container: str | None) -> bool:
        """Does as `unplug` if that takes no waiting, and tells whether it did. Raises PortsError."""
        return self._change_at_once(lambda: self._freeing(vm_uuid, vmi_uuid, container))

    async def unplug_instance(self, vmi_uuid: str) -> None:
        """Frees the instance's port of an interface, if it has one. Raises PortsError, NotReadyError."""

        def found() -> _Change:
            port = self._ports.get(vmi_uuid)
            return _Change(free=[port] if isinstance(port, InstancePort) else [])

        await self._change(found)

    async def set_link_state(self, vmi_uuid: str, state: Literal[0, 1]) -> None:
        """Sets whether a remote port's link is up. Raises LinkStateError, PortsError, NotReadyError."""

        def altered() -> _Change:
            port = self._ports.get(vmi_uuid)
            if not isinstance(port, InstancePort):
                raise LinkStateError(f"{{Port Not found {vmi_uuid}}}")
            if port.kind != REMOTE:
                raise LinkStateError(f"{{Incorrect Port type for {vmi_uuid}}}")
            return _Change(alter=[msgspec.structs.replace(port, link_state=state)])

        await self._change(altered)

    def begin_version(self) -> int:
        """Begins a new version and returns it: what is not plugged again from now on is older. Raises NotReadyError."""
        self._changes.check_loaded()
        self._version += 1
        return self._version

    def older_than(self, version: int) -> list[Port]:
        """Returns the ports that were last plugged before the version began."""
        return [port for port in self._ports.values() if self._plugged_in[port.vmi_uuid] < version]

    async def drop(self, ports: Iterable[Port], *, older_than: int) -> None:
        """Frees those of the ports that are still older than a version. Raises PortsError, NotReadyError."""
        vmi_uuids = {port.vmi_uuid for port in ports}
        await self._change(
            lambda: _Change(free=[port for port in self.older_than(older_than) if port.vmi_uuid in vmi_uuids])
        )

    def _plugging(self, ports: Sequence[Port]) -> _Change:
        return _Change(plug=[self._with_its_link_state(port) for port in ports])

    def _freeing(self, vm_uuid: str, vmi_uuid: str | None, container: str | None) -> _Change:
        ports = [port for port in self.of_machine(vm_uuid).values() if isinstance(port, ContainerPort)]
        wanted = (port for port in ports if vmi_uuid in (None, port.vmi_uuid))
        return _Change(free=[port for port in wanted if container in (None, port.vm_id)])

    async def _change(self, decide: Callable[[], _Change]) -> None:
        async def make() -> None:
            change = decide()
            if any(change):
                await self._make(change)

        await self._changes.make(make)

    def _change_at_once(self, decide: Callable[[], _Change]) -> bool:
        if not (self._changes.none_under_way and self._disk.is_quick):
            return False
        change = decide()
        if any(change):
            moved = self._moved_by(change)
            self._disk.time(lambda: self._keep(change, moved))
            self._take(change, moved)
        return True

    async def _make(self, change: _Change) -> None:
        moved = self._moved_by(change)
        try:
            await asyncio.to_thread(self._keep, change, moved)
        except PortsError as error:
            log.error("nothing plugged, nothing freed: %s", error)  # noqa: TRY400 - the message says all
            raise
        self._take(change, moved)

    def _moved_by(self, change: _Change) -> list[Port]:
        return [old for port in change.plug if (old := self._kept_elsewhere(port)) is not None]

    def _keep(self, change: _Change, moved: Sequence[Port]) -> None:
        self._directory.change(write=[*change.plug, *change.alter], remove=[*change.free, *moved])

    def _take(self, change: _Change, moved: Sequence[Port]) -> None:
        self._leave([*change.free, *moved])
        self._enter(change.plug)
        self._put(change.alter)
        asyncio.get_running_loop().call_later(_LOG_PAUSE, _log, change)
        if change.free:
            for callback in self._callbacks:
                callback(change.free)

    def _with_its_link_state(self, port: Port) -> Port:
        """Returns the port; a remote one that is plugged again stays up or down, as upstream has it."""
        old = self._ports.get(port.vmi_uuid)
        if not isinstance(port, InstancePort) or not isinstance(old, InstancePort):
            return port
        if port.kind != REMOTE or (old.kind, old.vm_uuid) != (port.kind, port.vm_uuid):
            return port
        return msgspec.structs.replace(port, link_state=old.link_state)

    def _kept_elsewhere(self, port: Port) -> Port | None:
        """Returns the interface's older port if it is of another machine, or kept in another place."""
        old = self._ports.get(port.vmi_uuid)
        if old is None or (old.vm_uuid == port.vm_uuid and self._directory.path(old) == self._directory.path(port)):
            return None
        return old

    def _enter(self, ports: Iterable[Port]) -> None:
        for port in ports:
            self._put([port])
            self._plugged_in[port.vmi_uuid] = self._version

    def _put(self, ports: Iterable[Port]) -> None:
        for port in ports:
            self._ports[port.vmi_uuid] = port
            self._of_machine.setdefault(port.vm_uuid, {})[port.vmi_uuid] = port

    def _leave(self, ports: Iterable[Port]) -> None:
        for port in ports:
            del self._ports[port.vmi_uuid]
            del self._plugged_in[port.vmi_uuid]
            of_machine = self._of_machine[port.vm_uuid]
            del of_machine[port.vmi_uuid]
            if not of_machine:
                del self._of_machine[port.vm_uuid]


def _log(change: _Change) -> None:
    for what, ports in (("plugged", change.plug), ("freed", change.free), ("link state set", change.alter)):
        for port in ports:
            with log_context(**_about(port)):
                log.info("%s, device %s", what, port.host_ifname)


def _about(port: Port) -> dict[str, str]:
    """Whom a line of the log is about; the name of a pod's machine is `<cluster>__<namespace>__<pod>`."""
    if isinstance(port, InstancePort):
        return {"vm": port.vm_uuid, "vmi": port.vmi_uuid}
    pod = "/".join(port.vm_name.split("__")[1:]) or port.vm_name
    return {"pod": pod, "container": port.vm_id, "vmi": port.vmi_uuid}
