"""The source that reads a folder of manifests.

All work on files is done by one thread, off the event loop; the loop keeps the account of what was told. The consumer
sets the pace: while it is busy with events, the folder is not read, and the kernel's hints wait.
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
    """Pods, network attachment definitions and namespaces below `folder`; pods that name no node run on `node`.

    `settle`: seconds for which a file must not have changed before it is taken. `rescan`: seconds after which the
    folder is looked at without a hint.
    """

    def __init__(
        self, folder: str, *, node: str, identities: IdentityLog, settle: float = 0.1, rescan: float = 10.0
    ) -> None:
        self._folder = folder
        self._node = node
        self._identities = identities
        self._settle = settle
        self._rescan = rescan

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """All events, in order, until the context is left.

        The list is not complete while anything in the folder cannot be read; another one follows when all can. Raises
        FolderError if the folder cannot be read at start; later that is a Problem. What the identity log raises
        comes through.
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
                watch.stop()
                await stream.aclose()
                await in_thread(watch.close)
        finally:
            executor.shutdown(wait=False)  # nothing runs in it any more: the thread ends by itself

    async def _stream(
        self, watch: FolderWatch, in_thread: Callable[..., Awaitable[Any]]
    ) -> AsyncGenerator[SourceEvent, None]:
        folder = ManifestFolder(self._folder, node=self._node, settle=self._settle, rescan=self._rescan)
        ledger = DeliveredObjects(self._identities)
        await ledger.load()
        listed: Listed | None = None
        while True:
            view: FolderState | None = await in_thread(folder.refresh)
            if view is not None:
                for event in await ledger.events(view):
                    yield event
                if listed is None or (view.complete and not listed.complete):
                    listed = Listed(complete=view.complete)
                    yield listed
            await in_thread(watch.wait, folder.wait(), folder.gather)
