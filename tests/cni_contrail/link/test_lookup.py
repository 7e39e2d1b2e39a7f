"""Link lookup by name and index, and carrier refresh, in the namespace of the socket."""

from collections.abc import Iterator

import pytest

from cni_contrail.link import lookup
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.lookup import index_of, name_of, refresh_carrier
from tests.support.kernel_state import link, link_local
from tests.support.netns import Netns


@pytest.fixture
def kernel(node: Netns) -> Iterator[RouteSocket]:
    """A socket in a namespace that has the pair `left` and `right`; the thread is elsewhere."""
    node.ip("link", "add", "left", "type", "veth", "peer", "name", "right")
    with node.inside():
        opened = RouteSocket()
    with opened:
        yield opened


def test_names_and_indexes_are_found(kernel: RouteSocket, node: Netns) -> None:
    index = link(node, "left")["ifindex"]
    assert index_of(kernel, "left") == index
    assert name_of(kernel, index) == "left"


def test_missing_links_are_not_found(kernel: RouteSocket) -> None:
    assert index_of(kernel, "nowhere") is None
    assert name_of(kernel, 4711) is None


def test_a_new_carrier_is_processed_at_once(kernel: RouteSocket, node: Netns) -> None:
    for end in ("left", "right"):
        node.ip("link", "set", end, "up")
    for end in ("left", "right"):
        refresh_carrier(kernel, end)
        assert link(node, end)["operstate"] == "UP"
        assert len(link_local(node, end)) == 1


def test_refreshing_the_carrier_of_a_deleted_link_is_no_error(kernel: RouteSocket) -> None:
    refresh_carrier(kernel, "nowhere")


def test_any_other_failure_is_an_error(kernel: RouteSocket) -> None:
    nowhere = lookup._WITH_POINTER.pack(b"left", 0)
    with pytest.raises(KernelError, match=r"^refresh carrier of link left: Bad address$"):
        lookup._ioctl(kernel, lookup._SIOCETHTOOL, nowhere, "refresh carrier of link left")
