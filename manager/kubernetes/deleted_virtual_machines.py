"""Watch for virtual machines that somebody else deletes while their pods are running, or writes without a pod.

Nothing is cached here, since a hundred thousand virtual machines are large and the manager knows which should exist. So
nothing is listed at start: the watch begins at the cluster's version before the manager read its virtual machines. Only
if the server no longer knows that version are all listed, by uuid, in pages.

Skipped: virtual machines of pods that are known to be gone, pending ones, objects that no manager wrote, and the
former copy of a virtual machine that moved to another bucket.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing, asynccontextmanager

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.object_cache import Added, Deleted, Key, Listed, ObjectChange
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.watch import WatchEvent, WatchType
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINES
from contrail_config.kubernetes.node_buckets import is_node_bucket, node_bucket
from contrail_config.objects import VirtualMachine
from manager.deletions import Deletion, Remaining, Removed

log = logging.getLogger(__name__)


class _VirtualMachineObject(msgspec.Struct, frozen=True, gc=False):
    """Most objects are skipped, so the spec is decoded only when needed."""

    metadata: Metadata
    spec: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def uuid(self) -> str:
        """The uuid of the virtual machine is the object's name."""
        return self.metadata.name

    def decode(self) -> VirtualMachine | None:
        """Returns the virtual machine, None if it is undecodable."""
        try:
            return msgspec.json.decode(self.spec, type=VirtualMachine)
        except msgspec.ValidationError as error:
            log.warning("virtual machine %s: undecodable: %s", self.uuid, error)
            return None


_RESOURCE = Resource(
    VIRTUAL_MACHINES.group,
    VIRTUAL_MACHINES.version,
    VIRTUAL_MACHINES.kind,
    VIRTUAL_MACHINES.plural,
    _VirtualMachineObject,
)


class _ListBuffer:
    """A reflector's cache that keeps only the uuids in the newest list, until they are taken.

    All objects of a list count as added, which they may be.
    """

    def __init__(self) -> None:
        self.objects: Mapping[Key, _VirtualMachineObject] = {}
        self.undecodable: Mapping[Key, UndecodableObject] = {}
        self._listed = set[str]()

    def begin_list(self) -> None:
        self._listed = set()

    def add_listed(
        self, item: _VirtualMachineObject | UndecodableObject
    ) -> Iterable[ObjectChange[_VirtualMachineObject]]:
        if isinstance(item, UndecodableObject) or not is_node_bucket(item.metadata.namespace):
            return ()
        self._listed.add(item.uuid)
        return (Added(item),)

    def end_list(self) -> Iterable[ObjectChange[_VirtualMachineObject]]:
        return (Listed(complete=True),)

    def apply_event(self, event: WatchEvent[_VirtualMachineObject]) -> Iterable[ObjectChange[_VirtualMachineObject]]:
        item = event.object
        if not isinstance(item, _VirtualMachineObject) or not is_node_bucket(item.metadata.namespace):
            return ()
        if event.type is WatchType.DELETED:
            return (Deleted(item),)
        return (Added(item),) if event.type is WatchType.ADDED else ()

    def take_list(self) -> AbstractSet[str]:
        """Returns the uuids, and drops them."""
        listed, self._listed = self._listed, set()
        return listed


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
        self._reflector: Reflector[_VirtualMachineObject] | None = None

    def problems(self) -> list[str]:
        """Returns why deletions are not up to date, if so."""
        problem = None if self._reflector is None else self._reflector.problem
        return [] if problem is None else [problem]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Deletion]]:
        """Yields all deletions from now on, until the context is left."""
        async with aclosing(self._follow(await self._current_version())) as deletions:
            yield deletions

    async def _current_version(self) -> str | None:
        """Returns the version to watch from; None, so that all are listed, if the server does not answer."""
        try:
            async with aclosing(self._client.pages(_RESOURCE, length=1)) as pages:
                return (await anext(pages)).resource_version
        except KubeError as error:
            log.warning("current version unknown, listing all virtual machines: %s", error)
            return None

    async def _follow(self, since: str | None) -> AsyncGenerator[Deletion, None]:
        buffer = _ListBuffer()
        self._reflector = Reflector(self._client, _RESOURCE, timings=self._timings, cache=buffer, since=since)
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    yield Remaining(buffer.take_list())
                elif isinstance(change, Added):
                    self._appeared(change.object)
                elif isinstance(change, Deleted) and (deletion := self._deletion(change.object)) is not None:
                    yield deletion

    def _appeared(self, item: _VirtualMachineObject) -> None:
        vm = item.decode()
        if vm is not None and vm.uuid == item.uuid:
            self._on_appeared(vm)

    def _deletion(self, item: _VirtualMachineObject) -> Deletion | None:
        last = item.decode()
        if last is not None and (
            last.is_pending or node_bucket(last.node) != item.metadata.namespace or self._is_gone(last)
        ):
            return None
        return Removed(item.uuid, last)
