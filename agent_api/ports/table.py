"""Table of plugged ports and their owners.

An interface has one port, that of its latest POST, of either type. A container port is owned by the container of that
POST: a DELETE that names a container unplugs only the ports that the container owns. So the late teardown of an old
sandbox never unplugs the ports of the same pod's new sandbox.

A change enters the table, and is acknowledged, only after its files are written. The files are written in a thread,
because a slow disk must not block other requests. The `..._nowait` methods write them on the event loop if the disk is
fast and no other change is in progress; otherwise they do nothing.

Each port has the generation in which it was last plugged. This identifies the ports that no client has plugged again
since a generation began.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from agent_api.errors import LinkStateError, StorageError
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.disk_latency import DiskLatency
from agent_api.ports.instance import REMOTE, InstancePort
from agent_api.ports.port import Port
from agent_api.serial_executor import SerialExecutor
from contrail_service.logs import log_context

log = logging.getLogger(__name__)

_LATER = 0.02  # seconds; on a single CPU, working on at once would delay the client that waits for the response

UnpluggedCallback = Callable[[Sequence[Port]], None]
"""Gets the unplugged ports once the change is on disk; runs on the event loop and must not raise."""


class _Change(NamedTuple):
    plug: Sequence[Port] = ()
    unplug: Sequence[Port] = ()
    update: Sequence[Port] = ()  # ports that stay plugged with other values


class PortTable:
    """All ports of this node; `executor` serializes the changes, `disk` tracks how long they take."""

    def __init__(self, directory: PortDirectory, *, disk: DiskLatency | None = None) -> None:
        self._directory = directory
        self._ports: dict[str, Port] = {}
        self._by_vm: dict[str, dict[str, Port]] = {}
        self._generation = 0
        self._plugged_in: dict[str, int] = {}  # generation by interface
        self._callbacks: list[UnpluggedCallback] = []
        self._on_change: Callable[[], None] | None = None
        self.executor = SerialExecutor()
        self._disk = disk or DiskLatency()

    def __len__(self) -> int:
        """The number of plugged ports."""
        return len(self._ports)

    @property
    def loaded(self) -> bool:
        """Whether the persisted ports are loaded."""
        return self.executor.loaded

    async def load(self) -> None:
        """Loads the ports that an earlier process persisted, without a check of their devices. Raises StorageError."""
        # Loaded ports belong to generation 0, so they are older than that of the first clean-up.
        self._add(await asyncio.to_thread(self._directory.load))
        self.executor.loaded = True
        self._notify()
        log.info("%d ports loaded", len(self._ports))

    def on_unplugged(self, callback: UnpluggedCallback) -> None:
        """Registers a callback for all ports that are unplugged from now on."""
        self._callbacks.append(callback)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Calls back after each change from now on; `callback` must neither wait nor raise."""
        self._on_change = callback

    def all(self) -> list[Port]:
        """Returns all ports."""
        return list(self._ports.values())

    def by_interface(self, vmi_uuid: str) -> Port | None:
        """Returns the port of an interface, None if it is not plugged."""
        return self._ports.get(vmi_uuid)

    def by_virtual_machine(self, vm_uuid: str) -> Mapping[str, Port]:
        """Returns the ports of a VirtualMachine by interface uuid."""
        return self._by_vm.get(vm_uuid, {})

    async def plug(self, ports: Sequence[Port]) -> None:
        """Plugs ports, all or none; their container becomes the owner. Raises StorageError, NotReadyError."""
        await self._change(lambda: self._plug_change(ports))

    def plug_nowait(self, ports: Sequence[Port]) -> bool:
        """Plugs ports if that is possible without waiting; returns whether it did. Raises StorageError."""
        return self._change_nowait(lambda: self._plug_change(ports))

    async def unplug(self, vm_uuid: str, *, vmi_uuid: str | None = None, container: str | None = None) -> None:
        """Unplugs container ports of a VirtualMachine, optionally only those of one interface or one container.

        Raises StorageError, NotReadyError.
        """
        await self._change(lambda: self._unplug_change(vm_uuid, vmi_uuid, container))

    def unplug_nowait(self, vm_uuid: str, *, vmi_uuid: str | None, container: str | None) -> bool:
        """Unplugs ports if that is possible without waiting; returns whether it did. Raises StorageError."""
        return self._change_nowait(lambda: self._unplug_change(vm_uuid, vmi_uuid, container))

    async def unplug_instance(self, vmi_uuid: str) -> None:
        """Unplugs the instance port of an interface, if it has one. Raises StorageError, NotReadyError."""

        def decide() -> _Change:
            port = self._ports.get(vmi_uuid)
            return _Change(unplug=[port] if isinstance(port, InstancePort) else [])

        await self._change(decide)

    async def set_link_state(self, vmi_uuid: str, state: Literal[0, 1]) -> None:
        """Sets the link state of a remote port, 1 for up. Raises LinkStateError, StorageError, NotReadyError."""

        def decide() -> _Change:
            port = self._ports.get(vmi_uuid)
            if not isinstance(port, InstancePort):
                raise LinkStateError(f"{{Port Not found {vmi_uuid}}}")
            if port.kind != REMOTE:
                raise LinkStateError(f"{{Incorrect Port type for {vmi_uuid}}}")
            return _Change(update=[msgspec.structs.replace(port, link_state=state)])

        await self._change(decide)

    def begin_generation(self) -> int:
        """Begins and returns a new generation; ports not plugged again from now on are older. Raises NotReadyError."""
        self.executor.check_loaded()
        self._generation += 1
        return self._generation

    def older_than(self, generation: int) -> list[Port]:
        """Returns the ports that were last plugged before the generation began."""
        return [port for port in self._ports.values() if self._plugged_in[port.vmi_uuid] < generation]

    async def unplug_older(self, ports: Iterable[Port], *, older_than: int) -> None:
        """Unplugs those of the ports that are still older than a generation. Raises StorageError, NotReadyError."""
        vmi_uuids = {port.vmi_uuid for port in ports}
        await self._change(
            lambda: _Change(unplug=[port for port in self.older_than(older_than) if port.vmi_uuid in vmi_uuids])
        )

    def _plug_change(self, ports: Sequence[Port]) -> _Change:
        return _Change(plug=[self._with_link_state(port) for port in ports])

    def _unplug_change(self, vm_uuid: str, vmi_uuid: str | None, container: str | None) -> _Change:
        ports = [port for port in self.by_virtual_machine(vm_uuid).values() if isinstance(port, ContainerPort)]
        wanted = (port for port in ports if vmi_uuid in (None, port.vmi_uuid))
        return _Change(unplug=[port for port in wanted if container in (None, port.vm_id)])

    async def _change(self, decide: Callable[[], _Change]) -> None:
        async def make() -> None:
            change = decide()  # inside the executor: earlier changes are visible
            if any(change):
                await self._apply_in_thread(change)

        await self.executor.run(make)

    def _change_nowait(self, decide: Callable[[], _Change]) -> bool:
        if not (self.executor.is_idle and self._disk.is_fast):
            return False
        change = decide()
        if any(change):
            replaced = self._replaced_by(change)
            # A StorageError is not logged here: the caller falls back to the other path, which logs it.
            self._disk.measure(lambda: self._persist(change, replaced))
            self._commit(change, replaced)
        return True

    async def _apply_in_thread(self, change: _Change) -> None:
        replaced = self._replaced_by(change)
        try:
            await asyncio.to_thread(self._persist, change, replaced)
        except StorageError as error:
            log.error("ports not changed: %s", error)  # noqa: TRY400 - the message is complete
            raise
        self._commit(change, replaced)

    def _replaced_by(self, change: _Change) -> list[Port]:
        return [old for port in change.plug if (old := self._stored_elsewhere(port)) is not None]

    def _persist(self, change: _Change, replaced: Sequence[Port]) -> None:
        self._directory.change(write=[*change.plug, *change.update], remove=[*change.unplug, *replaced])

    def _commit(self, change: _Change, replaced: Sequence[Port]) -> None:
        # Runs without a suspension point after the files are written, so no request sees a partial change.
        self._remove([*change.unplug, *replaced])
        self._add(change.plug)
        self._put(change.update)
        # Replaced ports are not notified: their interface stays plugged.
        asyncio.get_running_loop().call_later(_LATER, self._after, change)
        if change.unplug:
            for callback in self._callbacks:
                callback(change.unplug)
        self._notify()

    def _after(self, change: _Change) -> None:
        _log(change)
        self._prepare_nowait()

    def _prepare_nowait(self) -> None:
        if not (self.executor.is_idle and self._disk.is_fast):
            return
        try:
            is_more = self._disk.measure(self._directory.prepare)
        except StorageError as error:
            log.info("directory not made ahead: %s", error)  # changes do without
        else:
            if is_more:
                asyncio.get_running_loop().call_later(_LATER, self._prepare_nowait)

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def _with_link_state(self, port: Port) -> Port:
        """Returns the port; a remote port that is plugged again keeps its link state, as in the vrouter agent."""
        old = self._ports.get(port.vmi_uuid)
        if not isinstance(port, InstancePort) or not isinstance(old, InstancePort):
            return port
        if port.kind != REMOTE or (old.kind, old.vm_uuid) != (port.kind, port.vm_uuid):
            return port
        return msgspec.structs.replace(port, link_state=old.link_state)

    def _stored_elsewhere(self, port: Port) -> Port | None:
        """Returns the interface's older port if it has another VirtualMachine or another file, else None."""
        old = self._ports.get(port.vmi_uuid)
        if old is None or (old.vm_uuid == port.vm_uuid and self._directory.path(old) == self._directory.path(port)):
            return None
        return old

    def _add(self, ports: Iterable[Port]) -> None:
        for port in ports:
            self._put([port])
            self._plugged_in[port.vmi_uuid] = self._generation

    def _put(self, ports: Iterable[Port]) -> None:
        for port in ports:
            self._ports[port.vmi_uuid] = port
            self._by_vm.setdefault(port.vm_uuid, {})[port.vmi_uuid] = port

    def _remove(self, ports: Iterable[Port]) -> None:
        for port in ports:
            del self._ports[port.vmi_uuid]
            del self._plugged_in[port.vmi_uuid]
            of_vm = self._by_vm[port.vm_uuid]
            del of_vm[port.vmi_uuid]
            if not of_vm:
                del self._by_vm[port.vm_uuid]


def _log(change: _Change) -> None:
    for action, ports in (("plugged", change.plug), ("unplugged", change.unplug), ("link state set", change.update)):
        for port in ports:
            with log_context(**_log_fields(port)):
                log.info("port %s, device %s", action, port.host_ifname)


def _log_fields(port: Port) -> dict[str, str]:
    """Returns the log fields of a port; a pod's VirtualMachine is named `<cluster>__<namespace>__<pod>`."""
    if isinstance(port, InstancePort):
        return {"vm": port.vm_uuid, "vmi": port.vmi_uuid}
    pod = "/".join(port.vm_name.split("__")[1:]) or port.vm_name
    return {"pod": pod, "container": port.vm_id, "vmi": port.vmi_uuid}
