"""Paged lists (`limit` and `continue`), so that neither side holds a long list in memory.

No resourceVersion is sent, so the server returns its newest state (a quorum read), never one older than what a watch
has delivered. This holds also after etcd was restored or emptied, when an earlier resourceVersion lies in the future.
"""

from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject, decode, decode_object
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.transport import ApiRequest, Transport

PAGE_LENGTH = 500

T = TypeVar("T", bound=KubeObject)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; all pages belong to the snapshot of one `resource_version`."""

    items: list[T | UndecodableObject]
    resource_version: str


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None  # an empty list may be null


async def read_pages(
    transport: Transport, resource: Resource[T], selector: Selector, *, length: int
) -> AsyncGenerator[Page[T], None]:
    """Yields the pages, of at most `length` objects each.

    Raises KubeError; KubeGoneError if the snapshot expired before the last page, and the list must start over.
    """
    query: dict[str, Any] = {**selector.query(), "limit": str(length)}
    # `limit` is repeated with each `continue`; the other parameters must not change
    while True:
        request = ApiRequest("GET", resource.path(selector.namespace), query)
        response = decode(await transport.exchange(request), _List, request=str(request))
        items = [decode_object(item, resource.type) for item in response.items or ()]
        yield Page(items, response.metadata.resource_version)
        if not response.metadata.next_page:
            return
        query["continue"] = response.metadata.next_page
