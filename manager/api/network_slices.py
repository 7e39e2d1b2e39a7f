"""Pages of network slices: what each node tells the others of a network, and whether the server has it."""

import heapq
from collections.abc import Collection
from typing import Protocol

from contrail_config.kubernetes.compared_slice import ComparedSlice
from contrail_config.kubernetes.slice_table import SliceKey
from manager.api.paging import Key, Page, PageRequest, take_page
from manager.api.types import SliceView


class SliceFinder(Protocol):
    """Slices of the store, as it derives them from virtual machines and blocks."""

    def keys(self, network_uuids: Collection[str]) -> set[SliceKey]:
        """Returns those of the slices of these networks that exist, or should. Raises StoreError."""

    def compared(self, key: SliceKey) -> ComparedSlice | None:
        """Returns the slice, None if there is none, and there should be none."""


def slice_page(finder: SliceFinder, network_uuids: Collection[str], request: PageRequest) -> Page[SliceView]:
    """Returns slices by network and node; compares no more of them than the page has. Raises StoreError."""
    after = request.after
    following = [key for key in finder.keys(network_uuids) if after is None or key > after]
    heapq.heapify(following)  # cheaper than sorting them: a page has few of a hundred thousand
    views: list[SliceView] = []
    while following and len(views) <= request.limit:
        key = heapq.heappop(following)
        compared = finder.compared(key)
        if compared is not None:
            views.append(_view(key, compared))
    return take_page(views, _key, request)


def _view(key: SliceKey, compared: ComparedSlice) -> SliceView:
    wanted = compared.wanted
    if wanted is None:
        return SliceView(*key, compared.state)
    return SliceView(
        *key,
        compared.state,
        tunnel=wanted.tunnel,
        endpoints=len(wanted.endpoints),
        blocks=wanted.blocks,
        borrowed=wanted.borrowed,
        node_addresses=wanted.node_addresses,
    )


def _key(view: SliceView) -> Key:
    return (view.network_uuid, view.node)
