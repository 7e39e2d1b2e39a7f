"""Link lookup by name and index, and carrier refresh, in the namespace of the socket."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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


class TestRefreshingTheCarrierBefore68:
    """A dormant link has a carrier and is not operational, as a link whose carrier change is pending there."""

    @pytest.fixture(autouse=True)
    def earlier_kernel(self, monkeypatch: pytest.MonkeyPatch, node: Netns, kernel: RouteSocket) -> None:
        monkeypatch.setattr(lookup, "_QUERY_PROCESSES_CHANGES", False)
        node.ip("link", "set", "left", "mode", "dormant")
        node.ip("link", "set", "right", "up")
        node.ip("link", "set", "left", "up")

    def test_the_change_is_waited_for(self, kernel: RouteSocket, node: Netns) -> None:
        with ThreadPoolExecutor() as executor:
            refreshed = executor.submit(refresh_carrier, kernel, "left")
            with pytest.raises(TimeoutError):
                refreshed.result(timeout=0.1)
            node.ip("link", "set", "left", "mode", "default", "state", "up")
            refreshed.result(timeout=10)

    def test_the_wait_is_bounded(self, kernel: RouteSocket, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lookup, "_TIMEOUT_S", 0.05)
        with pytest.raises(KernelError, match=r"^refresh carrier of link left: not processed within 0\.05 s$"):
            refresh_carrier(kernel, "left")

    def test_a_link_without_a_carrier_is_not_waited_for(self, kernel: RouteSocket, node: Netns) -> None:
        node.ip("link", "set", "right", "down")
        refresh_carrier(kernel, "left")

    def test_a_deleted_link_is_not_waited_for(self, kernel: RouteSocket) -> None:
        refresh_carrier(kernel, "nowhere")


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("5.14.0-503.el9.x86_64", False),
        ("6.1.0-56-amd64", False),
        ("6.7", False),
        ("6.8-rc1", True),
        ("6.8+", True),
        ("6.12.117+deb12-amd64", True),
        ("7.0.0", True),
        ("unknown", False),
    ],
)
def test_kernel_releases_are_compared_by_number(release: str, *, expected: bool) -> None:
    assert lookup._is_at_least(release, (6, 8)) is expected


def test_refreshing_the_carrier_of_a_deleted_link_is_no_error(kernel: RouteSocket) -> None:
    refresh_carrier(kernel, "nowhere")


def test_any_other_failure_is_an_error(kernel: RouteSocket) -> None:
    nowhere = lookup._WITH_POINTER.pack(b"left", 0)
    with pytest.raises(KernelError, match=r"^refresh carrier of link left: Bad address$"):
        lookup._ioctl(kernel, lookup._SIOCETHTOOL, nowhere, "refresh carrier of link left")
