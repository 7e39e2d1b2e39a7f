"""Echo requests of the demo: an answer counts for the request that it answers."""

import threading
from collections.abc import Callable, Iterator

import pytest

from demo.echo import reaches
from tests.support.netns import Netns

HERE, NOWHERE = ("127.0.0.1", "::1"), ("192.0.2.9", "2001:db8::9")


@pytest.fixture
def namespace(make_netns: Callable[[str], Netns]) -> Netns:
    namespace = make_netns("pod")
    namespace.ip("link", "set", "lo", "up")
    return namespace


@pytest.fixture(params=[0, 1], ids=["IPv4", "IPv6"])
def family(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def _others_ask(namespace: Netns, family: int) -> Iterator[None]:
    """Somebody else asks in the same namespace, and is answered."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            assert reaches(namespace.path, HERE[family])

    asking = threading.Thread(target=ask)
    asking.start()
    yield
    ended.set()
    asking.join()


def test_an_own_address_is_reached(namespace: Netns, family: int) -> None:
    assert reaches(namespace.path, HERE[family])


@pytest.mark.usefixtures("_others_ask")
def test_an_answer_to_another_request_counts_for_that_alone(
    namespace: Netns, family: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.randbelow", lambda _bound: 7)  # identifiers may be equal, since they have 16 bits
    assert not reaches(namespace.path, NOWHERE[family], timeout=0.5)
