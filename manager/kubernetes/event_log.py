"""The log of events in a cluster: Kubernetes events of core/v1, which is what `kubectl describe` and `get events` show.

An event's name is derived from what it says, so an equal one is found and counted, also after a restart and by another
manager; the server forgets events after a while (an hour by default), and then counting goes on in a new one.

Bounded, since a list of a hundred thousand new pods would else have the manager write events for an hour: what exceeds
the rate is dropped. Warnings have a rate of their own, so that no crowd of pods that are well keeps from another one
what is wrong with it. Also not promised: exact counts while two managers tell the same.

Anybody may create events that bear the manager's name. What does not look like one of its own is passed over, and said
in the log, so that nobody takes the events of all others away from those who ask for them.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import MAX_MESSAGE_LENGTH, KubeError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.objects import Event, EventType
from manager.kubernetes.token_bucket import TokenBucket
from manager.kubernetes.wire import NADS, NAMESPACES, PODS

log = logging.getLogger(__name__)

COMPONENT = "contrail-manager"
"""Who tells, as `kubectl describe` shows it."""

_API_VERSIONS = {resource.kind: resource.api_version for resource in (PODS, NADS, NAMESPACES)}
_LONGEST_NAME = 253
_REMEMBERED = 4096
_CLUSTER_SCOPE = "default"  # where events of objects without a namespace are


class Reference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(msgspec.Struct, frozen=True):
    """Who tells."""

    component: str = ""


class EventObject(msgspec.Struct, frozen=True, rename="camel"):
    """An event, core/v1, as we write it."""

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


class _Told:
    """An event that was told: what is written of it, None if that is not known; `lock` is held while it is changed."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.written: EventObject | None = None


class KubernetesEventLog:
    """`instance` tells one manager from another; `allowances` bound what is written of each type."""

    def __init__(
        self, client: KubeClient, *, instance: str, allowances: Mapping[EventType, TokenBucket] | None = None
    ) -> None:
        self._client = client
        self._instance = instance
        self._allowances = allowances or {kind: TokenBucket(rate=50.0, burst=1000) for kind in EventType}
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self._passed_over: set[str] = set()  # uids of those that the log has told of

    async def record_event(self, event: Event) -> None:
        """Adds an event; one that equals an earlier one in object, type, reason and message adds to its count.

        Raises StoreUnavailableError if it cannot be written, or too many are.
        """
        allowance = self._allowances[event.type]
        if not allowance.take():
            raise StoreUnavailableError(f"more than {allowance.rate:g} events of type {event.type} per second")
        body = _event_object(event, self._instance)
        told = self._remember((body.metadata.namespace, body.metadata.name))
        try:
            async with told.lock:
                told.written = await self._write(body, told.written)
        except KubeError as error:
            raise StoreUnavailableError(f"event {event.reason} on {event.namespace}/{event.name}: {error}") from error

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Those events of managers that can be read, oldest `last_seen` first. Raises StoreUnavailableError."""
        chosen = {"reportingComponent": COMPONENT, "involvedObject.kind": kind, "involvedObject.name": name}
        chosen |= {"involvedObject.namespace": namespace}
        fields = ",".join(f"{key}={value}" for key, value in chosen.items() if value is not None)
        try:
            found = await self._client.list_each(EVENTS, Selector(namespace=namespace or "", fields=fields))
        except KubeError as error:
            raise StoreUnavailableError(f"events cannot be read: {error}") from error
        for item in found:
            if isinstance(item, UndecodableObject):
                self._pass_over(item)
        events = [_event(item) for item in found if isinstance(item, EventObject)]
        return sorted(events, key=lambda event: event.last_seen)

    async def _write(self, body: EventObject, known: EventObject | None) -> EventObject:
        """Writes the event as one more of those that are known, and returns it as kept."""
        if known is not None:
            return await self._count(body, known)
        try:
            return await self._create(body)
        except KubeExistsError:
            metadata = body.metadata
            return await self._count(body, await self._client.get(EVENTS, metadata.name, namespace=metadata.namespace))

    async def _count(self, body: EventObject, known: EventObject) -> EventObject:
        """Adds to the count; an event that the server has forgotten is told anew, with all that was counted."""
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

    def _pass_over(self, item: UndecodableObject) -> None:
        """Says so once of each, and of no more than so many: whoever makes them can make any number."""
        metadata = item.metadata
        if metadata.uid not in self._passed_over and len(self._passed_over) < _REMEMBERED:
            self._passed_over.add(metadata.uid)
            problem = item.problem[:MAX_MESSAGE_LENGTH]  # it shows a text of theirs
            log.warning("event %s/%s is passed over: %s", metadata.namespace, metadata.name, problem)

    def _remember(self, key: tuple[str, str]) -> _Told:
        told = self._told.setdefault(key, _Told())
        self._told.move_to_end(key)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return told


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
    """The object's name, and what tells this event from others of it."""
    said = "\0".join((event.kind, event.uid, event.type, event.reason, event.message))
    ending = "." + hashlib.sha256(said.encode()).hexdigest()[:16]
    return event.name[: _LONGEST_NAME - len(ending)].rstrip("-.") + ending


def _time(seconds: float) -> datetime:
    """Whole seconds: the server keeps no parts of them."""
    return datetime.fromtimestamp(int(seconds), UTC)
