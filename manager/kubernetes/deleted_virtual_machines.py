"""Watch for virtual machines that somebody else deletes while their pods are running, or writes without a pod.

Nothing is cached here, since a hundred thousand virtual machines are large and the manager knows which should exist. So
nothing is listed at start: the watch begins at the cluster's version before the manager read its virtual machines. Only
if the server no longer knows that version are all listed, by uuid, in pages.

Skipped: virtual machines of pods that are known to be gone, pending ones, objects that no manager wrote, and the
former copy of a virtual machine that moved to another bucket. Those that become invalid are known, to be reported.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing, asynccontextmanager
from typing import Any

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.object_cache import Added, Deleted, Key, Listed, Modified, ObjectChange
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import Metadata
from contrail_config.kube.watch import WatchEvent, WatchType
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import VirtualMachineObject
from contrail_config.kubernetes.node_buckets import is_node_bucket
from contrail_config.kubernetes.validated import VALIDATED_VIRTUAL_MACHINES
from contrail_config.objects import VirtualMachine
from manager.deletions import Deletion, Remaining, Removed

log = logging.getLogger(__name__)


class _ListBuffer:
    """A reflector's cache that keeps only the invalid objects, and the uuids in the newest list until they are taken.

    All valid objects of a list count as added, which they may be.
    """

    def __init__(self) -> None:
        self.objects: Mapping[Key, VirtualMachineObject] = {}
        self.undecodable: dict[Key, UndecodableObject] = {}
        self._listed = set[str]()

    def begin_list(self) -> None:
        self._listed = set()

    def add_listed(
        self, item: VirtualMachineObject | UndecodableObject
    ) -> Iterable[ObjectChange[VirtualMachineObject]]:
        if not is_node_bucket(item.metadata.namespace):
            return ()
        self._listed.add(item.metadata.name)  # which is the uuid
        return self._note(item, Added)

    def end_list(self) -> Iterable[ObjectChange[VirtualMachineObject]]:
        self.undecodable = {key: one for key, one in self.undecodable.items() if key[1] in self._listed}
        return (Listed(complete=True),)

    def apply_event(self, event: WatchEvent[VirtualMachineObject]) -> Iterable[ObjectChange[VirtualMachineObject]]:
        item = event.object
        if item is None or not is_node_bucket(item.metadata.namespace):
            return ()
        if event.type is WatchType.DELETED:
            self.undecodable.pop(_key(item.metadata), None)
            return (item,) if isinstance(item, UndecodableObject) else (Deleted(item),)
        return self._note(item, Added if event.type is WatchType.ADDED else Modified)

    def take_list(self) -> AbstractSet[str]:
        """Returns the uuids, and drops them."""
        listed, self._listed = self._listed, set()
        return listed

    def _note(
        self, item: VirtualMachineObject | UndecodableObject, change: type[Added[Any] | Modified[Any]]
    ) -> Iterable[ObjectChange[VirtualMachineObject]]:
        key = _key(item.metadata)
        if isinstance(item, UndecodableObject):
            self.undecodable[key] = item
            return (item,)
        self.undecodable.pop(key, None)
        return (change(item),)


class DeletedVirtualMachines:
    """Watches the virtual machines of all nodes. Needs the verbs list and watch.

    `is_gone` says whether the pod of a virtual machine is known to be gone. `on_appeared` is called with each virtual
    machine that somebody wrote, the manager itself included.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        is_gone: Callable[[VirtualMachine], bool],
        on_appeared: Callable[[VirtualMachine], None],
        timings: ReflectorTimings | None = None,
    ) -> None:
        self._client = client
        self._is_gone = is_gone
        self._on_appeared = on_appeared
        self._timings = timings or ReflectorTimings()
        self._reflector: Reflector[VirtualMachineObject] | None = None

    def problems(self) -> list[str]:
        """Returns why deletions are not up to date, if so."""
        problem = None if self._reflector is None else self._reflector.problem
        return [] if problem is None else [problem]

    def invalid_objects(self) -> list[InvalidObject]:
        """Returns the objects that were invalid when they were last written, since the watch began."""
        found = {} if self._reflector is None else self._reflector.undecodable
        return invalid_objects(VALIDATED_VIRTUAL_MACHINES, found.values())

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Deletion]]:
        """Yields all deletions from now on, until the context is left."""
        async with aclosing(self._follow(await self._current_version())) as deletions:
            yield deletions

    async def _current_version(self) -> str | None:
        """Returns the version to watch from; None, so that all are listed, if the server does not answer."""
        try:
            async with aclosing(self._client.pages(VALIDATED_VIRTUAL_MACHINES, length=1)) as pages:
                return (await anext(pages)).resource_version
        except KubeError as error:
            log.warning("current version unknown, listing all virtual machines: %s", error)
            return None

    async def _follow(self, since: str | None) -> AsyncGenerator[Deletion, None]:
        buffer = _ListBuffer()
        self._reflector = Reflector(
            self._client, VALIDATED_VIRTUAL_MACHINES, timings=self._timings, cache=buffer, since=since
        )
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    yield Remaining(buffer.take_list())
                elif isinstance(change, Added):
                    self._on_appeared(change.object.spec)
                elif isinstance(change, Deleted) and self._counts(change.object):
                    yield Removed(change.object.metadata.name, change.object.spec)
                elif isinstance(change, UndecodableObject) and _key(change.metadata) not in buffer.undecodable:
                    yield Removed(change.metadata.name, None)

    def _counts(self, deleted: VirtualMachineObject) -> bool:
        return deleted.is_in_place and not deleted.spec.is_pending and not self._is_gone(deleted.spec)


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name
