"""Paged lists (`limit` and `continue`), so that neither side holds a long list in memory.

A page that fails is requested again, not the whole list: with 5 % of failing requests a list of 300 pages would never
end. The server keeps the snapshot of a list for five to fifteen minutes. When it has expired, the list has to start
over: the server offers to continue with newer objects, but then changes between the two snapshots would be missed by a
watch that follows, and by decisions that need all objects of one moment.

By default no resourceVersion is sent, so the server returns its newest state, never one older than what a watch has
delivered. This holds also after etcd was restored or emptied, when an earlier resourceVersion lies in the future. Many
clients that list at the same time rather ask for a state that is not older than a certain one: each API server answers
from its watch cache, without etcd. Such a list is not paged, since older servers go to etcd for each page of it.

Other tasks run while a page is decoded: to check one object may take tenths of a second, and a process that does
nothing else for ten seconds loses its lease.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject, decode, decode_object
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.transport import ApiRequest

PAGE_LENGTH = 500

_LONGEST_STEP: Final = 0.01
"""Seconds for which objects are decoded without a pause for other tasks, or longer for a single object."""

Exchange = Callable[[ApiRequest], Awaitable[bytes]]
"""Sends a request, again if it fails, and returns the body of the response. Raises KubeError."""

T = TypeVar("T", bound=KubeObject)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; all pages belong to the snapshot of one `resource_version`."""

    items: list[T | UndecodableObject]
    resource_version: str
    following: str = ""  # token of the page that follows, empty after the last


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None  # an empty list may be null


async def read_pages(
    exchange: Exchange,
    resource: Resource[T],
    selector: Selector,
    *,
    length: int,
    not_older_than: str | None = None,
    token: str = "",
) -> AsyncGenerator[Page[T], None]:
    """Yields the pages, of at most `length` objects each; with `not_older_than` one page from the server's cache.

    With a `token`, those that follow the page with this token.

    Raises KubeError; KubeGoneError if the snapshot expired before the last page, and the list must start over.
    """
    query: dict[str, Any] = dict(selector.query())
    if not_older_than is None:
        query["limit"] = str(length)  # repeated with each `continue`; the other parameters must not change
    else:
        query |= {"resourceVersion": not_older_than, "resourceVersionMatch": "NotOlderThan"}
    if token:
        query["continue"] = token
    while True:
        request = ApiRequest("GET", resource.path(selector.namespace), query)
        response = decode(await exchange(request), _List, request=str(request))
        items = await _decode(response.items or (), resource)
        yield Page(items, response.metadata.resource_version, response.metadata.next_page)
        if not response.metadata.next_page:
            return
        query["continue"] = response.metadata.next_page


async def _decode(items: Iterable[msgspec.Raw], resource: Resource[T]) -> list[T | UndecodableObject]:
    found = list[T | UndecodableObject]()
    paused = perf_counter()
    for item in items:
        one = decode_object(item, resource)
        found.append(one)
        if perf_counter() - paused > _LONGEST_STEP:
            await asyncio.sleep(0)
            paused = perf_counter()
    return found
