"""Pages of the addresses of networks that are not free, each read from the store where the one before ended.

Which pod has an interface is found among all pods, so the event loop gets its turn between parts of that.
"""

import asyncio
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.errors import InvalidTokenError
from contrail_config.store import Store, StoredAddress
from manager.api.paging import Key, Page, PageRequest, page_token
from manager.api.types import AddressState, AddressView
from manager.controller.pod_record import PodRecord

_AT_ONCE = 1000
"""Pods between two turns of the event loop."""

_PodName = tuple[str, str]

T = TypeVar("T")


class NetworkAddresses:
    """`records` are the pods by `namespace/name`."""

    def __init__(self, store: Store, records: Mapping[str, PodRecord]) -> None:
        self._store = store
        self._records = records

    async def page(self, network_uuids: Iterable[str], request: PageRequest) -> Page[AddressView]:
        """Returns addresses by network, and then as the store orders them. Raises StoreError."""
        views: list[AddressView] = []
        start, last = _position(request.after)
        following: Key | None = None
        for uuid in sorted(each for each in network_uuids if each >= start):
            if len(views) == request.limit:
                following = (uuid,)  # from its beginning
                break
            found = await self._store.address_page(
                uuid, limit=request.limit - len(views), after=last if uuid == start else None
            )
            pods = await self._pods_of({each.owner for each in found.addresses}, uuid)
            views += [_view(uuid, each, pods.get(each.owner)) for each in found.addresses]
            if found.following is not None:
                following = (uuid, found.following)
                break
        return Page(tuple(views), None if following is None else page_token(following))

    async def _pods_of(self, interfaces: Collection[str], network_uuid: str) -> dict[str, _PodName]:
        """Returns the pods of these interfaces in the network, as far as they are known."""
        found: dict[str, _PodName] = {}
        for part in _parts(list(self._records.values()) if interfaces else []):
            for record in part:
                if record.pod is not None and record.assignment and network_uuid in record.assignment.networks:
                    name = (record.pod.namespace, record.pod.name)
                    found.update((each, name) for each in record.assignment.interfaces if each in interfaces)
            if len(found) == len(interfaces):
                break
            await asyncio.sleep(0)
        return found


def _position(after: Key | None) -> tuple[str, str | None]:
    """Returns the network where a page begins, and the last address before it there. Raises InvalidTokenError."""
    if after is None:
        return "", None
    uuid, *rest = after
    for address in rest:
        _check(address)
    return uuid, rest[0] if rest else None


def _check(address: str) -> None:
    try:
        parse_address(address, family=family_of(address))
    except ValueError as error:
        raise InvalidTokenError from error


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    remaining = iter(items)
    while part := tuple(itertools.islice(remaining, _AT_ONCE)):
        yield part


def _view(network_uuid: str, stored: StoredAddress, pod: _PodName | None) -> AddressView:
    namespace, name = pod or (None, None)
    state = AddressState.USED if stored.held_until is None else AddressState.HELD
    return AddressView(network_uuid, stored.address, state, namespace, name, stored.held_until)
