"""Event recorder: reports to owners of pods and NADs in the background, without delaying their reconciliation.

Events are written in batches, so that a store can put a batch into one transaction. Recording is best effort: an event
that cannot be written is logged and dropped. The backlog is bounded. While it is full, `record` waits for a moment,
which lets a store on disk keep up; a log that is still too slow then, such as an API server that stores no events, must
not keep pods from their interfaces, so new events are dropped until half of the backlog is written.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import Counter

from contrail_config.errors import StoreError
from contrail_config.objects import Event, EventType
from contrail_config.store import EventLog
from manager.source import Nad, Pod

log = logging.getLogger(__name__)

_BATCH_SIZE = 64
_MAX_BACKLOG = 2048
_PATIENCE = 1.0
"""Seconds for which callers wait for space in the backlog."""

_MAX_MESSAGE_LENGTH = 1024
"""Characters, as in Kubernetes events."""


class Subject(NamedTuple):
    """The object that an event is about, as in `contrail_config.objects.Event`."""

    kind: str
    namespace: str
    name: str
    uid: str


def about_pod(pod: Pod) -> Subject:
    """Returns the pod as subject; a static pod's uid is the hash of its manifest, by which kubectl finds its events."""
    return Subject("Pod", pod.namespace, pod.name, pod.config_hash or pod.uid)


def about_nad(nad: Nad) -> Subject:
    """Returns the NAD as subject."""
    return Subject("NetworkAttachmentDefinition", nad.namespace, nad.name, nad.uid)


class EventRecorder:
    """Records events in `event_log`; `recorded` counts them by `reason`. Belongs to one event loop.

    `on_recorded` is called with each event as it is stored then.
    """

    def __init__(
        self,
        event_log: EventLog,
        *,
        recorded: Counter,
        on_recorded: Callable[[Event], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._event_log = event_log
        self._recorded = recorded
        self._on_recorded = on_recorded
        self._clock = clock
        self._backlog: deque[Event] = deque()
        self._taken = asyncio.Event()  # a batch was taken from the backlog, or is not to be waited for
        self._dropped: int | None = None  # since the log became too slow; None: it is not
        self._writer: asyncio.Task[None] | None = None

    async def record(self, subject: Subject, event_type: EventType, reason: str, message: str) -> None:
        """Queues the event; an event equal to an earlier one increases its count."""
        now = self._clock()
        cut = message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[: _MAX_MESSAGE_LENGTH - 1]}…"
        event = Event(*subject, type=event_type, reason=reason, message=cut, count=1, first_seen=now, last_seen=now)
        if len(self._backlog) >= _MAX_BACKLOG and not await self._wait_for_space():
            self._dropped = (self._dropped or 0) + 1
            return
        self._backlog.append(event)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_backlog())

    async def flush(self) -> None:
        """Returns when all queued events are written or dropped."""
        if self._writer is not None:
            await asyncio.shield(self._writer)  # cancelling one waiter must not cancel the writer for all

    async def _wait_for_space(self) -> bool:
        """Returns whether the backlog has space; waits for it for a moment, unless others have waited in vain."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while len(self._backlog) >= _MAX_BACKLOG and self._dropped is None:
                    self._taken.clear()
                    await self._taken.wait()
        except TimeoutError:
            if self._dropped is None:
                log.warning("events are written too slowly: dropping new ones")
                self._dropped = 0
                self._taken.set()  # for the others that wait
        return len(self._backlog) < _MAX_BACKLOG

    async def _write_backlog(self) -> None:
        try:
            while self._backlog:
                batch = [self._backlog.popleft() for _ in range(min(_BATCH_SIZE, len(self._backlog)))]
                self._taken.set()
                if self._dropped is not None and len(self._backlog) <= _MAX_BACKLOG // 2:
                    log.warning("%d events dropped: others were written too slowly", self._dropped)
                    self._dropped = None
                await self._write(batch)
        finally:
            self._writer = None

    async def _write(self, batch: list[Event]) -> None:
        results = await asyncio.gather(*map(self._event_log.record_event, batch), return_exceptions=True)
        for result in results:
            if isinstance(result, Event):
                self._recorded.labels(result.reason).inc()
                self._on_recorded(result)
        if failures := [result for result in results if isinstance(result, BaseException)]:
            # Many events tend to fail for one reason: one line for the batch, with a traceback only for bugs.
            bugs = [failure for failure in failures if not isinstance(failure, StoreError)]
            log.warning("%d events dropped: %s", len(failures), failures[0], exc_info=next(iter(bugs), None))
