"""Readiness is checked by one request at a time; slots of connections that end are waited for."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cni_contrail.daemon import connection_slots
from cni_contrail.daemon.connection_slots import ConnectionSlots
from cni_contrail.daemon.readiness_cache import ReadinessCache
from tests.support.fake_clock import FakeClock

Pairs = list[tuple[socket.socket, socket.socket]]


class Check:
    """A check that lasts until it is released."""

    def __init__(self) -> None:
        self.number = 0
        self.began = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> str:
        self.number += 1
        self.began.set()
        assert self.released.wait(10)
        return f"result {self.number}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def check() -> Iterator[Check]:
    check = Check()
    yield check
    check.released.set()


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    """Five connections, each with that of its peer."""
    found = [socket.socketpair() for _ in range(5)]
    yield found
    for pair in found:
        for end in pair:
            end.close()


def test_a_result_is_served_for_a_second(check: Check, clock: FakeClock) -> None:
    check.released.set()
    cache = ReadinessCache(check, clock)
    assert [cache.reason() for _ in range(3)] == ["result 1"] * 3
    clock.advance(0.9)
    assert cache.reason() == "result 1"
    clock.advance(0.2)
    assert cache.reason() == "result 2"


def test_no_request_waits_for_the_check_of_another(check: Check, clock: FakeClock) -> None:
    cache = ReadinessCache(check, clock)
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(cache.reason)
        assert check.began.wait(10)
        assert [cache.reason() for _ in range(100)] == ["readiness: not checked yet"] * 100
        check.released.set()
        assert checking.result(10) == "result 1"
    assert check.number == 1


def test_a_check_that_hangs_makes_the_node_unready(check: Check, clock: FakeClock) -> None:
    check.released.set()
    cache = ReadinessCache(check, clock)
    cache.reason()
    check.released.clear()
    check.began.clear()
    clock.advance(2)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(cache.reason)
        assert check.began.wait(10)
        assert cache.reason() == "result 1"
        clock.advance(9)
        assert cache.reason() == "readiness: the check has had no result for 11 s"
        check.released.set()


def is_shut_down(pair: tuple[socket.socket, socket.socket]) -> bool:
    """Whether the connection's slot was given to another one."""
    pair[1].setblocking(False)
    try:
        return pair[1].recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_of_a_peer_with_too_many_connections_makes_room(pairs: Pairs) -> None:
    slots = ConnectionSlots(limit=4, per_peer=2)
    for pair, peer in zip(pairs, ["b", "a", "a", "a"], strict=False):
        assert slots.take(pair[0], peer)
    assert [is_shut_down(pair) for pair in pairs] == [False, True, False, False, False]


def test_the_oldest_of_all_makes_room_if_there_are_too_many(pairs: Pairs) -> None:
    slots = ConnectionSlots(limit=4, per_peer=2)
    for pair, peer in zip(pairs, ["a", "b", "c", "d", "e"], strict=True):
        assert slots.take(pair[0], peer)
    assert [is_shut_down(pair) for pair in pairs] == [True, False, False, False, False]


def test_a_connection_waits_for_the_slot_of_one_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_slots, "_CLOSING_TIMEOUT", 10)
    slots = ConnectionSlots(limit=1, per_peer=1)
    with socket.socket() as first, socket.socket() as second, socket.socket() as third:
        assert slots.take(first, "a")
        assert slots.take(second, "a")  # shuts the first one down, which is still being served
        ends = threading.Timer(0.01, slots.free, (first,))
        ends.start()
        assert slots.take(third, "a")
        ends.join()


def test_a_connection_is_refused_if_none_ends() -> None:
    slots = ConnectionSlots(limit=1, per_peer=1)
    with socket.socket() as first, socket.socket() as second, socket.socket() as third:
        assert slots.take(first, "a")
        assert slots.take(second, "a")
        assert not slots.take(third, "a")
