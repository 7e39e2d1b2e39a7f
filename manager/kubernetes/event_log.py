"""Event log of a cluster: Kubernetes events of core/v1, as `kubectl describe` and `kubectl get events` show them.

An event's name is derived from its content, so an equal one is found and counted, also after a restart and by another
manager. The server expires events (after an hour by default); counting then continues in a new event.

Rate-limited, since a list of a hundred thousand new pods would otherwise have the manager write events for an hour:
events above the rate are dropped. Warnings have limits of their own, so that many healthy pods do not suppress the
warning of another, and so has each namespace: see `event_rate_limits`. Also not promised: exact counts while two
managers record the same event.

Anybody may create events in the manager's name. Those that cannot be decoded are skipped and logged; otherwise one of
them could make all events unreadable.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import MAX_MESSAGE_LENGTH, KubeError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import KINDS
from contrail_config.objects import Event, EventType
from contrail_config.store import EventPage
from manager.kubernetes.event_rate_limits import EventRateLimits
from manager.kubernetes.wire import NADS, NAMESPACES, PODS

log = logging.getLogger(__name__)

COMPONENT = "contrail-manager"
"""Reporting component, as `kubectl describe` shows it."""

_KINDS: tuple[Resource[Any], ...] = (PODS, NADS, NAMESPACES, *KINDS)
_API_VERSIONS = {resource.kind: resource.api_version for resource in _KINDS}
_MAX_NAME_LENGTH = 253
_CACHE_SIZE = 4096
_CLUSTER_SCOPE = "default"  # namespace of events on objects without one


class Reference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(msgspec.Struct, frozen=True):
    """Reporting component."""

    component: str = ""


class EventObject(msgspec.Struct, frozen=True, rename="camel"):
    """An event, core/v1, as the manager writes it."""

    metadata: Metadata
    involved_object: Reference
    type: EventType
    reason: str
    message: str
    count: int
    first_timestamp: datetime
    last_timestamp: datetime
    source: EventSource = EventSource(COMPONENT)
    reporting_component: str = COMPONENT
    reporting_instance: str = ""


EVENTS = Resource("", "v1", "Event", "events", EventObject)


class _CachedEvent:
    """An event as last written, None if unknown; `lock` is held while it is written."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.written: EventObject | None = None


class KubernetesEventLog:
    """`instance` identifies this manager; `rate_limits` by event type."""

    def __init__(
        self, client: KubeClient, *, instance: str, rate_limits: Mapping[EventType, EventRateLimits] | None = None
    ) -> None:
        self._client = client
        self._instance = instance
        self._rate_limits = rate_limits or {kind: EventRateLimits() for kind in EventType}
        self._cache: OrderedDict[tuple[str, str], _CachedEvent] = OrderedDict()  # by namespace and name
        self._skipped: set[str] = set()  # uids of undecodable events that were logged

    async def record_event(self, event: Event) -> Event:
        """Writes an event; one equal to an earlier one in object, type, reason and message increases its count.

        Returns the event as written. Raises StoreUnavailableError if it cannot be written or exceeds the rate limit.
        """
        if exceeded := self._rate_limits[event.type].exceeded_by(event.namespace):
            raise StoreUnavailableError(f"rate limit of type {event.type}: {exceeded}")
        body = _event_object(event, self._instance)
        cached = self._cached((body.metadata.namespace, body.metadata.name))
        try:
            async with cached.lock:
                cached.written = written = await self._write(body, cached.written)
        except KubeError as error:
            raise StoreUnavailableError(f"event {event.reason} on {event.namespace}/{event.name}: {error}") from error
        return _event(written)

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Returns the decodable events of all managers, oldest `last_seen` first. Raises StoreUnavailableError."""
        chosen = {"reportingComponent": COMPONENT, "involvedObject.kind": kind, "involvedObject.name": name}
        chosen |= {"involvedObject.namespace": namespace}
        # The API server evaluates field selectors, so events of other components are not transferred.
        fields = ",".join(f"{key}={value}" for key, value in chosen.items() if value is not None)
        try:
            found = await self._client.list_each(EVENTS, Selector(namespace=namespace or "", fields=fields))
        except KubeError as error:
            raise StoreUnavailableError(f"cannot list events: {error}") from error
        return sorted(self._decodable(found), key=lambda event: event.last_seen)

    async def event_page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        """Returns at most `limit` events of all managers in the server's order, without undecodable ones.

        There may be hundreds of thousands, so only this page is read. Raises StoreUnavailableError, also if the token
        has expired, after some minutes.
        """
        selector = Selector(namespace=namespace or "", fields=f"reportingComponent={COMPONENT}")
        try:
            async with aclosing(self._client.pages(EVENTS, selector, length=limit, token=token or "")) as pages:
                page = await anext(pages)
        except KubeError as error:
            raise StoreUnavailableError(f"cannot list events: {error}") from error
        return EventPage(self._decodable(page.items), page.following or None)

    def _decodable(self, items: Iterable[EventObject | UndecodableObject]) -> list[Event]:
        events = []
        for item in items:
            if isinstance(item, UndecodableObject):
                self._skip(item)
            else:
                events.append(_event(item))
        return events

    async def _write(self, body: EventObject, known: EventObject | None) -> EventObject:
        """Creates the event or increases its count, and returns it as stored."""
        if known is not None:
            return await self._count(body, known)
        try:
            return await self._create(body)
        except KubeExistsError:  # written by an earlier manager, or dropped from the cache
            metadata = body.metadata
            return await self._count(body, await self._client.get(EVENTS, metadata.name, namespace=metadata.namespace))

    async def _count(self, body: EventObject, known: EventObject) -> EventObject:
        """Increases the count; an event that the server has expired is created again with the whole count."""
        count = known.count + body.count
        last_seen = max(known.last_timestamp, body.last_timestamp)
        metadata = body.metadata
        patch = {"count": count, "lastTimestamp": last_seen}
        try:
            return await self._client.patch(EVENTS, metadata.name, patch, namespace=metadata.namespace)
        except KubeNotFoundError:
            again = msgspec.structs.replace(body, count=count, first_timestamp=known.first_timestamp)
            return await self._create(again)

    async def _create(self, body: EventObject) -> EventObject:
        return await self._client.create(EVENTS, body, namespace=body.metadata.namespace)

    def _skip(self, item: UndecodableObject) -> None:
        """Logs each undecodable event once, up to a bound: anybody can create any number of them."""
        metadata = item.metadata
        if metadata.uid not in self._skipped and len(self._skipped) < _CACHE_SIZE:
            self._skipped.add(metadata.uid)
            problem = item.problem[:MAX_MESSAGE_LENGTH]  # quotes foreign text
            log.warning("event %s/%s: skipped: %s", metadata.namespace, metadata.name, problem)

    def _cached(self, key: tuple[str, str]) -> _CachedEvent:
        cached = self._cache.setdefault(key, _CachedEvent())
        self._cache.move_to_end(key)
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return cached


def _event_object(event: Event, instance: str) -> EventObject:
    namespace = event.namespace or _CLUSTER_SCOPE
    version = _API_VERSIONS.get(event.kind, "")
    return EventObject(
        metadata=Metadata(name=_name(event), namespace=namespace),
        involved_object=Reference(event.kind, version, event.namespace, event.name, event.uid),
        type=event.type,
        reason=event.reason,
        message=event.message,
        count=event.count,
        first_timestamp=_time(event.first_seen),
        last_timestamp=_time(event.last_seen),
        reporting_instance=instance,
    )


def _event(found: EventObject) -> Event:
    about = found.involved_object
    return Event(
        kind=about.kind,
        namespace=about.namespace,
        name=about.name,
        uid=about.uid,
        type=found.type,
        reason=found.reason,
        message=found.message,
        count=found.count,
        first_seen=found.first_timestamp.timestamp(),
        last_seen=found.last_timestamp.timestamp(),
    )


def _name(event: Event) -> str:
    """Returns the name of the event's object, with a hash of the event's content."""
    content = "\0".join((event.kind, event.uid, event.type, event.reason, event.message))
    ending = "." + hashlib.sha256(content.encode()).hexdigest()[:16]
    return event.name[: _MAX_NAME_LENGTH - len(ending)].rstrip("-.") + ending


def _time(seconds: float) -> datetime:
    """Cuts to whole seconds, as the server does."""
    return datetime.fromtimestamp(int(seconds), UTC)
