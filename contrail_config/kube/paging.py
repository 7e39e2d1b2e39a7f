"""Lists in pages, so that neither side holds a long list in memory.

Without a resourceVersion the server answers with its newest state, never one older than what a watch has shown before;
that also holds where its history began anew (etcd restored or emptied), when a version of before is in its future.
"""

from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject, decode, decode_object
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.transport import Call, Transport

PAGE_LENGTH = 500

T = TypeVar("T", bound=KubeObject)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list; all parts are of one `resource_version`."""

    items: list[T | UndecodableObject]
    resource_version: str


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None  # an empty list may be null


async def read_pages(
    transport: Transport, resource: Resource[T], selection: Selector, *, length: int
) -> AsyncGenerator[Page[T], None]:
    """Gives the pages. Raises KubeError: KubeGoneError if it took too long, and is to be begun anew."""
    query: dict[str, Any] = {**selection.query(), "limit": str(length)}
    while True:
        call = Call("GET", resource.path(selection.namespace), query)
        answer = decode(await transport.exchange(call), _List, asked=str(call))
        items = [decode_object(item, resource.type) for item in answer.items or ()]
        yield Page(items, answer.metadata.resource_version)
        if not answer.metadata.next_page:
            return
        query["continue"] = answer.metadata.next_page
