"""Informer: follows all objects of one kind with list and watch, and applies each change. Starts on first use.

What it has applied may lag behind the server, by milliseconds, or by more while the server is unreachable. So nothing
that must be certain is derived from it alone.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Listed, ObjectChange
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.resource_versions import is_at_least, is_newer
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects

log = logging.getLogger(__name__)

DEADLINE = 60.0
"""Timeout in seconds of the first list."""

OBSERVE_DEADLINE = 3.0
"""Timeout in seconds of the watch's delivery of an own write; usually it takes milliseconds."""

T = TypeVar("T", bound=KubeObject)


class Informer(Generic[T]):
    """Calls `apply` for each change of the resource, in a task of its own."""

    def __init__(self, client: KubeClient, resource: Resource[T], apply: Callable[[ObjectChange[T]], None]) -> None:
        self._client = client
        self._resource = resource
        self._apply = apply
        self._reflector = self._new_reflector()
        self._changed = asyncio.Event()
        self._is_listing = True
        self._newest = ""  # version of the newest change
        self._listed = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """The objects that are skipped now."""
        return invalid_objects(self._resource, self._reflector.undecodable.values())

    async def wait_until_synced(self) -> None:
        """Waits until all objects were listed once. Starts the informer, or restarts it after an unexpected error.

        Raises StoreUnavailableError after DEADLINE, or if it is closed.
        """
        self._check_open()
        if self._task is None or self._task.done():
            self._listed.clear()  # after an unexpected error: everything must be listed again
            self._reflector = self._new_reflector()
            self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._reflector.problem)) from error
        self._check_open()

    @property
    def objects(self) -> Collection[T]:
        """The objects, as lists and watch events left them."""
        return self._reflector.objects.values()

    async def observe(self, name: str, version: str) -> bool:
        """Waits until the objects include all changes up to this version, at which this process wrote an object.

        The server delivers the changes of a kind in order, so the object's own change marks the place. It may be
        changed or deleted again by then. Returns False if the watch is later than OBSERVE_DEADLINE.
        """
        try:
            async with asyncio.timeout(OBSERVE_DEADLINE):
                while not self.has_observed(name, version):
                    self._check_open()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            log.warning("%s: the watch is more than %g s behind", self._resource.plural, OBSERVE_DEADLINE)
            return False
        return True

    def has_observed(self, name: str, version: str) -> bool:
        """Whether the objects include all changes up to this version of this object."""
        if self._is_listing:  # the objects are from two moments until the list has ended
            return False
        known = self._reflector.objects.get(("", name))
        return is_at_least(self._newest, version) or (
            known is not None and is_at_least(known.metadata.resource_version, version)
        )

    async def close(self) -> None:
        """Stops for good."""
        self._closed = True
        self._listed.set()  # wakes those that wait, which then raise
        self._changed.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _new_reflector(self) -> Reflector[T]:
        return Reflector(self._client, self._resource, before_list=self._begin_list)

    async def _begin_list(self) -> None:
        self._is_listing = True
        self._newest = ""  # the list may be of an older moment, or of another history

    def _note(self, change: ObjectChange[T]) -> None:
        if isinstance(change, Listed):
            self._is_listing = False
            self._listed.set()
        elif not self._is_listing and not isinstance(change, UndecodableObject):
            version = change.object.metadata.resource_version
            # A deletion may carry the last known state, which is older.
            self._newest = version if not self._newest or is_newer(version, self._newest) else self._newest
        self._changed.set()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")

    async def _run(self) -> None:
        try:
            async with self._reflector.changes() as changes:
                async for change in changes:
                    self._apply(change)
                    self._note(change)
                    await asyncio.sleep(0)  # a page of a long list arrives at once; let other tasks run
        except Exception:
            log.exception("informer of %s: unexpected error", self._resource.plural)
