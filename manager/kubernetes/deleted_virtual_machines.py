"""Machines that go from the cluster: somebody may delete one by hand while its pod runs on.

What is there is not kept here, for a hundred thousand machines are much, and the manager knows which there should be.
So nothing is listed at the start: the watch begins where the cluster stood before the manager read its machines. Only
where the server does not know that place any more all machines are listed, by name and uuid, a page at a time.

Machines of pods that are known to have gone are passed over, and those of a namespace that goes: its controller deletes
what is in it in any order, and the server takes nothing new there.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.object_cache import Change, Deleted, Key, Listed
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.watch import WatchEvent, WatchType
from contrail_config.kubernetes.kinds import UUID_LABEL, VIRTUAL_MACHINES
from contrail_config.objects import VirtualMachine
from manager.deletions import Deletion, Remaining, Removed

log = logging.getLogger(__name__)


class _Labels(msgspec.Struct, frozen=True, gc=False):
    uuid: str = msgspec.field(name=UUID_LABEL, default="")


class _Metadata(Metadata, frozen=True):
    labels: _Labels = _Labels()


class _Machine(msgspec.Struct, frozen=True, gc=False):
    """Most of them only pass by: the spec is not looked at before it has to be."""

    metadata: _Metadata
    spec: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def place(self) -> str:
        """`namespace/pod`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def read(self) -> VirtualMachine | None:
        """The machine, None if it is none."""
        try:
            return msgspec.json.decode(self.spec, type=VirtualMachine)
        except msgspec.ValidationError as error:
            log.warning("the last state of machine %s cannot be read: %s", self.place, error)
            return None


_MACHINES = Resource(
    VIRTUAL_MACHINES.group, VIRTUAL_MACHINES.version, VIRTUAL_MACHINES.kind, VIRTUAL_MACHINES.plural, _Machine
)


class _Passage:
    """A view that keeps nothing but what the newest list told of, until that is taken."""

    def __init__(self) -> None:
        self.objects: Mapping[Key, _Machine] = {}
        self._listed: dict[str, str] = {}

    def begin_list(self) -> None:
        self._listed = {}

    def add_listed(self, item: _Machine | UndecodableObject) -> Iterable[Change[_Machine]]:
        if isinstance(item, _Machine):
            self._listed[item.place] = item.metadata.labels.uuid
        return ()

    def end_list(self) -> Iterable[Change[_Machine]]:
        return (Listed(complete=True),)

    def apply_event(self, event: WatchEvent[_Machine]) -> Iterable[Change[_Machine]]:
        if event.type is WatchType.DELETED and isinstance(event.object, _Machine):
            return (Deleted(event.object),)
        return ()

    def take_list(self) -> Mapping[str, str]:
        """Uuids by place."""
        listed, self._listed = self._listed, {}
        return listed


class DeletedVirtualMachines:
    """Follows the machines of all namespaces. Needs the verbs list and watch.

    `is_gone` tells whether the pod that a machine was made for is known to have gone.
    """

    def __init__(
        self, client: KubeClient, *, is_gone: Callable[[VirtualMachine], bool], pace: ReflectorTimings | None = None
    ) -> None:
        self._client = client
        self._is_gone = is_gone
        self._pace = pace or ReflectorTimings()
        self._reflector: Reflector[_Machine] | None = None

    def problems(self) -> list[str]:
        """Why what was told is not up to date, if it is not."""
        problem = None if self._reflector is None else self._reflector.problem
        return [] if problem is None else [problem]

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[Deletion]]:
        """All losses from now on, until the context is left."""
        async with aclosing(self._follow(await self._version())) as losses:
            yield losses

    async def _version(self) -> str | None:
        """Where the cluster stands; None, so that all machines are listed, if the server does not say it now."""
        try:
            async with aclosing(self._client.pages(_MACHINES, length=1)) as pages:
                return (await anext(pages)).resource_version
        except KubeError as error:
            log.warning("machines will be listed: %s", error)
            return None

    async def _follow(self, since: str | None) -> AsyncGenerator[Deletion, None]:
        passage = _Passage()
        self._reflector = Reflector(self._client, _MACHINES, timings=self._pace, cache=passage, since=since)
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    yield Remaining(passage.take_list())
                elif isinstance(change, Deleted) and (loss := self._judge(change.object)) is not None:
                    yield loss

    def _judge(self, item: _Machine) -> Deletion | None:
        last = item.read()
        if last is not None and self._is_gone(last):
            return None
        return Removed(item.place, item.metadata.labels.uuid if last is None else last.uuid, last)
