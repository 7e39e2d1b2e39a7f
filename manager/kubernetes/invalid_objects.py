"""Reports invalid objects of our kinds, which all readers skip: by an event on each, by readiness and by a metric.

They make a leader unready: only the system can write them, so the rules of the server are missing or were bypassed, and
what such an object should say is lost until somebody looks into it. Everything else goes on, and nothing restarts,
since liveness does not depend on it.

Level-triggered: the readers are asked what they skip now. Not promised: an event for each of many, since all events are
rate-limited.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Gauge

from contrail_config.errors import StoreError
from contrail_config.kubernetes.invalid_objects import MAX_REPORTED, InvalidObject
from contrail_config.kubernetes.kinds import KINDS
from contrail_config.objects import EventType
from manager.events import EventRecorder, Subject

log = logging.getLogger(__name__)

INVALID: Final = "ObjectInvalid"
"""Event reason: an object of `opencontrail.org` is skipped."""

INTERVAL: Final = 5.0
"""Seconds between two checks for new ones."""

_MAX_LENGTH: Final = 300  # characters of a reason of readiness; an event has the whole problem

FindInvalid = Callable[[], Iterable[InvalidObject]]


class CheckedStore(Protocol):
    """The part of the Kubernetes store that is used here."""

    async def check_invalid_objects(self) -> None:
        """See `contrail_config.kubernetes.store.KubernetesStore`."""


class InvalidObjects:
    """What all readers of a manager skip; `interval` in seconds."""

    def __init__(self, *, interval: float = INTERVAL) -> None:
        self.interval = interval
        self._readers: list[FindInvalid] = []
        self._reported = set[InvalidObject]()

    def add(self, reader: FindInvalid) -> None:
        """Adds a reader, which returns what it skips now."""
        self._readers.append(reader)

    def register(self, registry: CollectorRegistry) -> None:
        """Registers the number of invalid objects by kind."""
        gauge = Gauge("contrail_manager_invalid_objects", "Invalid objects, skipped", ["kind"], registry=registry)
        for resource in KINDS:
            gauge.labels(resource.kind).set_function(partial(self._count, resource.kind))

    def problems(self) -> list[str]:
        """Returns what is wrong with the first of them, and how many others there are."""
        found = self._current()
        named = [f"{one.title}: {one.problem}"[:_MAX_LENGTH] for one in found[:MAX_REPORTED]]
        others = len(found) - len(named)
        return [*named, f"{others} other invalid objects"] if others else named

    async def run(self, store: CheckedStore, recorder: EventRecorder) -> None:
        """Records events until it is cancelled."""
        while True:
            await _check(store.check_invalid_objects)
            found = self._current()
            for one in found:
                if one not in self._reported:
                    log.warning("%s: invalid, skipped: %s", one.title, one.problem)
                    await recorder.record(_subject(one), EventType.WARNING, INVALID, f"skipped: {one.problem}")
            self._reported = set(found)
            await asyncio.sleep(self.interval)

    def _current(self) -> list[InvalidObject]:
        """Returns each object once, with the problem that the last of its readers found."""
        found = {(one.kind, one.namespace, one.name): one for reader in self._readers for one in reader()}
        return sorted(found.values())

    def _count(self, kind: str) -> float:
        return float(sum(one.kind == kind for one in self._current()))


async def _check(check: Callable[[], Awaitable[None]]) -> None:
    try:
        await check()
    except StoreError as error:
        log.info("invalid objects: cannot be read again: %s", error)


def _subject(one: InvalidObject) -> Subject:
    return Subject(one.kind, one.namespace, one.name, one.uid)
