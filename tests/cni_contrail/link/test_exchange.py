"""rtnetlink exchange: errors by request, many requests at once, and timeouts."""

import errno
import socket
import struct
import time
from collections.abc import Iterator, Sequence

import pytest

from cni_contrail.link import exchange, links, message, routes
from cni_contrail.link.addresses import IPV6_ADDRESSES, add_address, parse_ready_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address, Route
from tests.support.kernel_state import address_texts
from tests.support.netns import Netns

NLMSG_NOOP = 1


@pytest.fixture
def kernel(node: Netns) -> Iterator[RouteSocket]:
    """A socket in a namespace that has the pair `left` and `right`."""
    node.ip("link", "add", "left", "type", "veth", "peer", "name", "right")
    with node.inside(), RouteSocket() as opened:
        yield opened


@pytest.fixture
def left(kernel: RouteSocket) -> LinkRef:
    index = index_of(kernel, "left")
    assert index is not None
    return LinkRef("left", index)


def test_requests_without_an_error_are_executed(kernel: RouteSocket, left: LinkRef, node: Netns) -> None:
    wanted = [Address("10.0.0.5", 24), Address("10.0.0.5", 24), Address("10.0.0.6", 24)]
    errors = kernel.execute([add_address(left, address) for address in wanted])
    assert list(errors) == [1]
    assert str(errors[1]).startswith("left: add address 10.0.0.5/24: File exists")
    assert address_texts(node, "left") == ["10.0.0.5/24", "10.0.0.6/24"]


def test_the_first_error_is_raised(kernel: RouteSocket, left: LinkRef) -> None:
    wanted = [add_address(left, Address(text, 24)) for text in ("10.0.0.5", "224.0.0.5", "10.0.0.5")]
    with pytest.raises(KernelError, match=r"10\.0\.0\.5/24: File exists"):
        kernel.execute_all([wanted[0], wanted[2], wanted[0]])


def test_an_error_contains_the_kernels_explanation(kernel: RouteSocket, left: LinkRef) -> None:
    with pytest.raises(KernelError) as caught:
        kernel.execute_all([routes.add_route(left, Route("10.1.2.3/16", None), ())])
    assert caught.value.errno == errno.EINVAL
    assert str(caught.value).startswith("left: add route 10.1.2.3/16: Invalid argument (Invalid prefix")


def test_an_error_without_explanation_describes_its_number(kernel: RouteSocket) -> None:
    (error,) = kernel.get([links.get("nowhere")])
    assert isinstance(error, KernelError)
    assert (error.errno, str(error)) == (errno.ENODEV, "find link nowhere: No such device")


def test_answers_and_errors_keep_the_order_of_the_requests(kernel: RouteSocket, left: LinkRef) -> None:
    first, second, third = kernel.get([links.get("left"), links.get("nowhere"), links.get("lo")])
    assert not isinstance(first, KernelError)
    assert isinstance(second, KernelError)
    assert not isinstance(third, KernelError)
    assert (links.parse_link(first).ifindex, links.parse_link(third).ifindex) == (left.ifindex, 1)


def test_more_errors_than_fit_the_receive_buffer_are_all_returned(kernel: RouteSocket, left: LinkRef) -> None:
    kernel.execute_all([add_address(left, Address("10.0.0.5", 24))])
    errors = kernel.execute([add_address(left, Address("10.0.0.5", 24))] * 1000)
    assert list(errors) == list(range(1000))
    assert {error.errno for error in errors.values()} == {errno.EEXIST}


def test_no_requests_send_nothing(kernel: RouteSocket) -> None:
    assert kernel.execute([]) == {}
    assert kernel.get([]) == []


def test_a_dump_over_several_datagrams_is_complete(kernel: RouteSocket, left: LinkRef, node: Netns) -> None:
    node.ip("link", "set", "left", "up")
    wanted = [Route(f"10.{number // 250}.{number % 250}.0/24", None) for number in range(2000)]
    kernel.execute_all([routes.add_route(left, route, ()) for route in wanted])
    assert len(kernel.dump(routes.dump_routes())) >= 2000


def test_a_dump_keeps_only_what_is_wanted(kernel: RouteSocket, left: LinkRef, node: Netns) -> None:
    node.ip("link", "set", "left", "up")
    kernel.execute_all([routes.add_route(left, Route(cidr, None), ()) for cidr in ("10.0.0.0/24", "0.0.0.0/0")])
    (body,) = kernel.dump(routes.dump_routes(socket.AF_INET), keep=routes.is_default)
    (route,) = routes.parse_default_routes(body)
    assert route.ifindex == left.ifindex


def test_a_rejected_dump_is_an_error(kernel: RouteSocket) -> None:
    unknown = NetlinkRequest(kind=0x7FE, flags=message.DUMP, body=bytes(4), what="read an unknown kind")
    with pytest.raises(KernelError, match=r"^read an unknown kind: Operation not supported"):
        kernel.dump(unknown)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 200])
def test_a_dump_sees_what_the_requests_before_it_did(
    kernel: RouteSocket, left: LinkRef, node: Netns, number: int
) -> None:
    node.ip("link", "set", "left", "up")
    dump = routes.dump_routes(socket.AF_INET)
    before = kernel.dump(dump)
    added = [routes.add_route(left, Route(f"10.0.{each}.0/24", None), ()) for each in range(number)]
    assert len(kernel.execute_all_and_dump(added, dump)) == len(before) + number


@pytest.mark.parametrize("number", [2, 128])
def test_the_first_error_before_a_dump_is_raised_and_the_socket_stays_usable(
    kernel: RouteSocket, left: LinkRef, number: int
) -> None:
    same = [add_address(left, Address("10.0.0.5", 24))] * number
    with pytest.raises(KernelError, match=r"^left: add address 10\.0\.0\.5/24: File exists"):
        kernel.execute_all_and_dump([*same, add_address(left, Address("224.0.0.5", 24))], routes.dump_routes())
    (body,) = kernel.get([links.get("left")])
    assert not isinstance(body, KernelError)
    assert links.parse_link(body).ifindex == left.ifindex, "no late answer comes first"


class Interrupted:
    """Marks the first `times` dumps as interrupted."""

    def __init__(self, kernel: RouteSocket, patch: pytest.MonkeyPatch, *, times: int) -> None:
        self.left = times
        self.attempts = 0
        self.kernel = kernel
        self._receive = RouteSocket._receive
        patch.setattr(RouteSocket, "_receive", self.receive)

    def receive(self, what: str) -> bytes:
        data = bytearray(self._receive(self.kernel, what))
        if any(each.kind == message.DONE for each in message.messages(bytes(data))):
            self.attempts += 1
            if self.attempts <= self.left:
                data[6] |= message.DUMP_INTERRUPTED
        return bytes(data)


def test_requests_before_an_interrupted_dump_are_executed_once(
    kernel: RouteSocket, left: LinkRef, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    Interrupted(kernel, monkeypatch, times=2)
    kernel.execute_all_and_dump([add_address(left, Address("10.0.0.5", 24))], routes.dump_routes())
    assert address_texts(node, "left") == ["10.0.0.5/24"]


def test_an_interrupted_dump_is_retried(kernel: RouteSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = Interrupted(kernel, monkeypatch, times=3)
    kernel.dump(routes.dump_routes())
    assert interrupted.attempts == 4


def test_a_dump_that_is_always_interrupted_is_an_error(kernel: RouteSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = Interrupted(kernel, monkeypatch, times=1000)
    with pytest.raises(KernelError, match=r"^read routes: changed during each of 10 attempts"):
        kernel.dump(routes.dump_routes())
    assert interrupted.attempts == 10


def test_a_missing_answer_times_out(node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    def say_nothing(requests: Sequence[NetlinkRequest], first: int) -> bytes:
        return struct.pack("=IHHII", 16, NLMSG_NOOP, 1, first, 0)

    monkeypatch.setattr(exchange, "_TIMEOUT_S", 1)
    monkeypatch.setattr(message, "datagram", say_nothing)
    started = time.monotonic()
    with (
        node.inside(),
        RouteSocket() as kernel,
        pytest.raises(KernelError, match="did not answer within 1 s") as caught,
    ):
        kernel.execute_all([links.get("lo")])
    assert caught.value.errno == errno.ETIMEDOUT
    assert time.monotonic() - started < 3


def test_notifications_between_answers_are_kept(kernel: RouteSocket, left: LinkRef, node: Netns) -> None:
    node.ip("link", "set", "left", "up")
    kernel.subscribe(IPV6_ADDRESSES)
    kernel.execute_all([add_address(left, Address("fd00::5", 64)), add_address(left, Address("fd00::6", 64))])
    kernel.dump(routes.dump_routes())
    notifications = kernel.notifications("hear")
    addresses = {parse_ready_address(next(notifications)) for _ in range(2)}
    assert addresses == {socket.inet_pton(socket.AF_INET6, text) for text in ("fd00::5", "fd00::6")}


def test_other_notifications_report_no_address(kernel: RouteSocket, left: LinkRef, node: Netns) -> None:
    node.ip("link", "set", "left", "up")
    kernel.subscribe(IPV6_ADDRESSES)
    kernel.execute_all([add_address(left, Address("fd00::5", 64))])
    notifications = kernel.notifications("hear")
    assert parse_ready_address(next(notifications)) is not None
    node.ip("addr", "del", "fd00::5/64", "dev", "left")
    assert parse_ready_address(next(notifications)) is None


def test_a_missing_notification_times_out(node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_TIMEOUT_S", 1)
    with node.inside(), RouteSocket() as kernel:
        kernel.subscribe(IPV6_ADDRESSES)
        with pytest.raises(KernelError, match=r"^hear: the kernel did not answer within 1 s$"):
            next(kernel.notifications("hear"))


def test_an_endless_stream_of_notifications_times_out(kernel: RouteSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = struct.pack("=IHHII", 16, NLMSG_NOOP, 0, 0, 0)
    monkeypatch.setattr(exchange, "_TIMEOUT_S", 0.1)
    monkeypatch.setattr(RouteSocket, "_receive", lambda *_: noise)
    with pytest.raises(KernelError, match=r"^hear: the kernel did not answer within 0\.1 s$"):
        list(kernel.notifications("hear"))


def test_answers_to_earlier_requests_are_skipped(kernel: RouteSocket, left: LinkRef) -> None:
    """A late answer to a request that timed out must not be taken as the answer to this one."""
    kernel._socket.send(message.datagram([links.get("lo")], 77_000))
    (answer,) = kernel.get([links.get("left")])
    assert not isinstance(answer, KernelError)
    assert links.parse_link(answer).ifindex == left.ifindex
    kernel._socket.send(message.datagram([links.get("lo")], 78_000))
    assert len(kernel.dump(routes.dump_routes())) > 0


def test_a_socket_error_names_the_request(kernel: RouteSocket) -> None:
    kernel._socket.close()
    with pytest.raises(KernelError, match=r"^find link lo: Bad file descriptor$"):
        kernel.get([links.get("lo")])
    with pytest.raises(KernelError, match=r"^find link lo: Bad file descriptor$"):
        kernel._receive("find link lo")
