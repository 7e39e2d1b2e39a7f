"""Pages of the addresses of networks that are not free.

A network may have hundreds of thousands of them, so the event loop gets its turn between parts of the work.
"""

import asyncio
import heapq
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.store import Store, StoredAddress
from manager.api.paging import Key, Page, PageRequest, take_page
from manager.api.types import AddressState, AddressView
from manager.controller.pod_record import PodRecord

_AT_ONCE = 1000
"""Addresses or pods between two turns of the event loop."""

_PodName = tuple[str, str]

T = TypeVar("T")


class NetworkAddresses:
    """`records` are the pods by `namespace/name`."""

    def __init__(self, store: Store, records: Mapping[str, PodRecord]) -> None:
        self._store = store
        self._records = records

    async def page(self, network_uuids: Iterable[str], request: PageRequest) -> Page[AddressView]:
        """Returns addresses by network, family and number. Raises StoreError."""
        views: list[AddressView] = []
        for uuid in sorted(network_uuids):
            if request.after is None or uuid >= request.after[0]:
                views += await self._of_network(uuid, request)
            if len(views) > request.limit:
                break
        return take_page(views, _key_of_view, request)

    async def _of_network(self, uuid: str, request: PageRequest) -> list[AddressView]:
        """Returns the first addresses of a network that follow, one more than the page has."""
        first: list[StoredAddress] = []
        for part in _parts(await self._store.addresses(uuid)):
            following = [each for each in part if request.after is None or _key(uuid, each.address) > request.after]
            first = heapq.nsmallest(request.limit + 1, [*first, *following], key=lambda each: _key("", each.address))
            await asyncio.sleep(0)
        pods = await self._pods_of({each.owner for each in first}, uuid)
        return [_view(uuid, each, pods.get(each.owner)) for each in first]

    async def _pods_of(self, interfaces: Collection[str], network_uuid: str) -> dict[str, _PodName]:
        """Returns the pods of these interfaces in the network, as far as they are known."""
        found: dict[str, _PodName] = {}
        for part in _parts(list(self._records.values())):
            for record in part:
                if record.pod is not None and record.assignment and network_uuid in record.assignment.networks:
                    name = (record.pod.namespace, record.pod.name)
                    found.update((each, name) for each in record.assignment.interfaces if each in interfaces)
            if len(found) == len(interfaces):
                break
            await asyncio.sleep(0)
        return found


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    remaining = iter(items)
    while part := tuple(itertools.islice(remaining, _AT_ONCE)):
        yield part


def _view(network_uuid: str, stored: StoredAddress, pod: _PodName | None) -> AddressView:
    namespace, name = pod or (None, None)
    state = AddressState.USED if stored.held_until is None else AddressState.HELD
    return AddressView(network_uuid, stored.address, state, namespace, name, stored.held_until)


def _key_of_view(view: AddressView) -> Key:
    return _key(view.network_uuid, view.address)


def _key(network_uuid: str, address: str) -> Key:
    family = family_of(address)
    return (network_uuid, str(family), f"{parse_address(address, family=family):039d}")
