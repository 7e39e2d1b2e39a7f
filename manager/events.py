"""Tells owners of pods and NADs what happened to them, without holding up the work on them.

Events are written in the background, many at once, so that a store can put them into one transaction. Telling is never
a reason to fail: what cannot be recorded is logged and dropped. Only where the log of events falls far behind does
`record` wait for it, which bounds what is kept in memory.
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

_BATCH = 64
_MOST_PENDING = 2048
_LONGEST_MESSAGE = 1024
"""Characters, as in Kubernetes events."""


class Subject(NamedTuple):
    """What an event is about, as in `contrail_config.objects.Event`."""

    kind: str
    namespace: str
    name: str
    uid: str


def about_pod(pod: Pod) -> Subject:
    """The pod as subject of an event; a static pod bears its hash there, by which kubectl looks for its events."""
    return Subject("Pod", pod.namespace, pod.name, pod.config_hash or pod.uid)


def about_nad(nad: Nad) -> Subject:
    """The NAD as subject of an event."""
    return Subject("NetworkAttachmentDefinition", nad.namespace, nad.name, nad.uid)


class EventRecorder:
    """Records events in `event_log`; `recorded` counts them by `reason`. Belongs to one event loop."""

    def __init__(self, event_log: EventLog, *, recorded: Counter, clock: Callable[[], float] = time.time) -> None:
        self._event_log = event_log
        self._recorded = recorded
        self._clock = clock
        self._pending: deque[Event] = deque()
        self._writer: asyncio.Task[None] | None = None

    async def record(self, subject: Subject, event_type: EventType, reason: str, message: str) -> None:
        """Has the event written soon; one that equals an earlier one adds to its count."""
        now = self._clock()
        cut = message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
        self._pending.append(
            Event(*subject, type=event_type, reason=reason, message=cut, count=1, first_seen=now, last_seen=now)
        )
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_pending())
        if len(self._pending) >= _MOST_PENDING:
            await self.flushed()

    async def flushed(self) -> None:
        """Returns when what was told before is written, or was dropped."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def _write_pending(self) -> None:
        try:
            while self._pending:
                batch = [self._pending.popleft() for _ in range(min(_BATCH, len(self._pending)))]
                await self._write(batch)
        finally:
            self._writer = None

    async def _write(self, batch: list[Event]) -> None:
        results = await asyncio.gather(*map(self._event_log.record_event, batch), return_exceptions=True)
        for event, result in zip(batch, results, strict=True):
            if result is None:
                self._recorded.labels(event.reason).inc()
        if failures := [result for result in results if result is not None]:
            bugs = [failure for failure in failures if not isinstance(failure, StoreError)]
            log.warning("%d events are lost: %s", len(failures), failures[0], exc_info=next(iter(bugs), None))
