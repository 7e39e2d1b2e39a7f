"""Pages of network slices: the slices are looked for once, and few of them compared, however many there are."""

from collections.abc import Collection

from contrail_config.kubernetes.compared_slice import ComparedSlice, SliceState
from contrail_config.kubernetes.slice_table import SliceKey
from manager.api.network_slices import slice_page
from manager.api.paging import PageRequest, read_token

_NETWORKS = [f"network-{number}" for number in range(10)]
_SLICES = [SliceKey(network, f"node-{number}") for network in _NETWORKS for number in range(10)]
_GONE = {key for key in _SLICES if key.node == "node-3"}


class _Finder:
    """Finds slices of ten networks on ten nodes, of which one has been deleted since."""

    def __init__(self) -> None:
        self.looked: list[Collection[str]] = []
        self.compared_keys: list[SliceKey] = []

    def keys(self, network_uuids: Collection[str]) -> set[SliceKey]:
        self.looked.append(network_uuids)
        return {key for key in _SLICES if key.network_uuid in network_uuids}

    def compared(self, key: SliceKey) -> ComparedSlice | None:
        self.compared_keys.append(key)
        return None if key in _GONE else ComparedSlice(None, SliceState.SUPERFLUOUS)


def test_pages_have_all_slices_in_order_once() -> None:
    finder, found, request = _Finder(), [], PageRequest(limit=7)
    while True:
        page = slice_page(finder, set(_NETWORKS), request)
        found += [(view.network_uuid, view.node) for view in page.items]
        if page.next_page is None:
            break
        assert len(page.items) == request.limit
        request = PageRequest(limit=7, after=read_token(page.next_page))
    assert found == [tuple(key) for key in _SLICES if key not in _GONE]


def test_a_page_looks_for_slices_once_and_compares_no_more_than_it_has() -> None:
    finder = _Finder()
    page = slice_page(finder, set(_NETWORKS), PageRequest(limit=3, after=("network-8", "node-9")))
    assert [(view.network_uuid, view.node) for view in page.items] == [("network-9", f"node-{n}") for n in range(3)]
    assert len(finder.looked) == 1
    assert len(finder.compared_keys) <= 3 + 1 + len(_GONE) // 10
