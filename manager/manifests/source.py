"""Source that reads a folder of manifests.

One thread does all work on files, off the event loop; the loop tracks the delivered objects. The consumer sets the
pace: while it handles events, the folder is not read and kernel events are not fetched.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from manager.manifests.delivered_objects import DeliveredObjects
from manager.manifests.folder_watch import FolderWatch
from manager.manifests.inventory import FolderState
from manager.manifests.manifest_folder import ManifestFolder
from manager.source import IdentityLog, Listed, SourceEvent


class ManifestSource:
    """Pods, network attachment definitions and namespaces below `folder`; `node` is the node of pods that name none.

    `quiet_period`: seconds without a change after which a file is read. `rescan`: seconds after which the folder is
    scanned without a kernel event.
    """

    def __init__(
        self, folder: str, *, node: str, identities: IdentityLog, quiet_period: float = 0.1, rescan: float = 10.0
    ) -> None:
        self._folder = folder
        self._node = node
        self._identities = identities
        self._quiet_period = quiet_period
        self._rescan = rescan

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """Yields all events, in order, until the context is left.

        `Listed` is not complete while anything in the folder cannot be read; a complete one follows. Raises FolderError
        if the folder cannot be read at start; later, that is a Problem. Errors of the identity log propagate.
        """
        watch = FolderWatch(self._folder)
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="manifests")
        in_thread = partial(asyncio.get_running_loop().run_in_executor, executor)
        try:
            await in_thread(watch.open)
            stream = self._stream(watch, in_thread)
            try:
                yield stream
            finally:
                # Ends a wait in the thread; otherwise close() would have to wait for its timeout.
                watch.stop()
                await stream.aclose()
                await in_thread(watch.close)
        finally:
            executor.shutdown(wait=False)  # idle by now: the thread ends by itself

    async def _stream(
        self, watch: FolderWatch, in_thread: Callable[..., Awaitable[Any]]
    ) -> AsyncGenerator[SourceEvent, None]:
        folder = ManifestFolder(self._folder, node=self._node, quiet_period=self._quiet_period, rescan=self._rescan)
        delivered = DeliveredObjects(self._identities)
        await delivered.load()
        listed: Listed | None = None
        while True:
            state: FolderState | None = await in_thread(folder.refresh)
            if state is not None:
                for event in await delivered.events(state):
                    yield event
                # A later incomplete state is not reported again: its problems are events.
                if listed is None or (state.complete and not listed.complete):
                    listed = Listed(complete=state.complete)
                    yield listed
            await in_thread(watch.wait, folder.wait(), folder.gather)
