"""Pages of network slices: what each node tells the others of a network, and whether the server has it."""

from collections.abc import Iterable
from typing import Protocol

from contrail_config.kubernetes.compared_slice import ComparedSlice
from manager.api.paging import Key, Page, PageRequest, take_page
from manager.api.types import SliceView


class SliceFinder(Protocol):
    """Slices of the store, as it derives them from virtual machines and blocks."""

    def nodes_of(self, network_uuid: str) -> set[str]:
        """Returns the nodes that have a slice of the network, or should have one. Raises StoreError."""

    def compared(self, network_uuid: str, node: str) -> ComparedSlice | None:
        """Returns the slice of a node, None if there is none, and there should be none."""


def slice_page(finder: SliceFinder, network_uuids: Iterable[str], request: PageRequest) -> Page[SliceView]:
    """Returns slices by network and node. Derives no more slices than the page has. Raises StoreError."""
    views: list[SliceView] = []
    for uuid in sorted(network_uuids):
        for node in sorted(finder.nodes_of(uuid)):
            if len(views) > request.limit:
                return take_page(views, _key, request)
            is_next = request.after is None or (uuid, node) > request.after
            compared = finder.compared(uuid, node) if is_next else None
            if compared is not None:
                views.append(_view(uuid, node, compared))
    return take_page(views, _key, request)


def _view(network_uuid: str, node: str, compared: ComparedSlice) -> SliceView:
    wanted = compared.wanted
    if wanted is None:
        return SliceView(network_uuid, node, compared.state)
    return SliceView(
        network_uuid,
        node,
        compared.state,
        tunnel=wanted.tunnel,
        endpoints=len(wanted.endpoints),
        blocks=wanted.blocks,
        borrowed=wanted.borrowed,
        node_addresses=wanted.node_addresses,
    )


def _key(view: SliceView) -> Key:
    return (view.network_uuid, view.node)
