"""Probes and the responder that answers them, as processes without rights in two joined network namespaces."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import msgspec
import pytest

from contrailctl.check.live.wire import PORT, Kind, Outcome, Probe, Result
from tests.support.cluster_processes import BINARIES
from tests.support.netns import Netns

_USER = "65532"
_UNPRIVILEGED = ("setpriv", "--reuid", _USER, "--regid", _USER, "--clear-groups", "--bounding-set=-all",
                 "--no-new-privs", "--")  # fmt: skip
ADDRESSES = (("10.7.0.11", "10.7.0.12"), ("fd07::11", "fd07::12"))
BOTH = pytest.mark.parametrize(("source", "target"), ADDRESSES, ids=["IPv4", "IPv6"])


class Pair(NamedTuple):
    """Two pods; a responder with the identity `pod-2` runs in the second."""

    first: Netns
    second: Netns


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        first, second = Netns("pod"), Netns("pod")
        stack.callback(first.delete)
        stack.callback(second.delete)
        first.ip("link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", second.name)
        for pod, addresses in zip((first, second), zip(*ADDRESSES, strict=True), strict=True):
            pod.ip("link", "set", "eth1", "addrgenmode", "none", "up")
            for address, length in zip(addresses, ("24", "64"), strict=True):
                options = ["nodad"] if ":" in address else []
                pod.ip("address", "add", f"{address}/{length}", "dev", "eth1", *options)
            permitted = pod.run("sysctl", "-qw", f"net.ipv4.ping_group_range={_USER} {_USER}")
            assert permitted.returncode == 0, permitted.stderr
        stack.enter_context(_responder(second, "pod-2"))
        assert probed(first, *(ask(*addresses) for addresses in ADDRESSES)) == [Result(Outcome.ANSWERED)] * 2
        yield Pair(first, second)


@contextmanager
def _responder(pod: Netns, identity: str) -> Iterator[None]:
    command = ["nsenter", f"--net={pod.path}", "--", *_UNPRIVILEGED, str(BINARIES / "contrailctl"), "check", "respond"]
    with subprocess.Popen([*command, identity]) as process:
        try:
            yield
        finally:
            process.terminate()


def probed(pod: Netns, *probes: Probe) -> list[Result]:
    """Results of probes from a pod."""
    given = msgspec.json.encode(probes).decode()
    program = str(BINARIES / "contrailctl")
    ended = pod.run(*_UNPRIVILEGED, program, "check", "probe", "--output", "json", input=given)
    assert ended.returncode == 0, ended.stderr
    return msgspec.json.decode(ended.stdout, type=list[Result])


def ask(source: str, target: str, **fields: object) -> Probe:
    values = {"kind": Kind.RESPONDER, "expected": True, "identity": "pod-2", **fields}
    return msgspec.convert({"source": source, "target": target, **values}, Probe)


@contextmanager
def dropped(pod: Netns, packets: str) -> Iterator[None]:
    """Drops packets that arrive in a pod."""
    rules = f"table inet lossy {{ chain input {{ type filter hook input priority 0; {packets} drop; }}; }}"
    made = pod.run("nft", rules)
    assert made.returncode == 0, made.stderr
    try:
        yield
    finally:
        assert pod.run("nft", "delete table inet lossy").returncode == 0


@BOTH
def test_the_pod_that_is_asked_answers(pair: Pair, source: str, target: str) -> None:
    assert probed(pair.first, ask(source, target)) == [Result(Outcome.ANSWERED)]


@BOTH
def test_another_pod_that_answers_is_told_from_the_one_that_is_asked(pair: Pair, source: str, target: str) -> None:
    (result,) = probed(pair.first, ask(source, target, identity="pod-3", expected=False))
    assert result == Result(Outcome.OTHER, "another server answers: 'pod-2'")


@BOTH
def test_lost_long_packets_are_told_from_lost_packets(pair: Pair, source: str, target: str) -> None:
    with dropped(pair.second, "meta length > 1000"):
        assert probed(pair.first, ask(source, target)) == [Result(Outcome.SHORT)]


@BOTH
def test_nothing_that_answers_is_awaited_for_a_bounded_time(pair: Pair, source: str, target: str) -> None:
    with dropped(pair.second, f"tcp dport {PORT}"):
        assert probed(pair.first, ask(source, target, expected=False)) == [Result(Outcome.NOTHING, "timed out")]


@BOTH
def test_a_responder_that_starts_later_is_awaited(pair: Pair, source: str, target: str) -> None:
    given = msgspec.json.encode([ask(target, source, identity="pod-1")])
    command = ["nsenter", f"--net={pair.second.path}", "--", str(BINARIES / "contrailctl"), "check", "probe"]
    with subprocess.Popen([*command, "-o", "json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as prober:
        assert prober.stdin is not None
        prober.stdin.write(given)
        prober.stdin.close()
        with _responder(pair.first, "pod-1"):
            assert prober.stdout is not None
            assert json.load(prober.stdout) == [{"outcome": "answered"}]


@BOTH
def test_a_connection_needs_no_responder(pair: Pair, source: str, target: str) -> None:
    (result,) = probed(pair.first, ask(source, target, kind=Kind.CONNECT, expected=False))
    assert result == Result(Outcome.ANSWERED)
    (refused,) = probed(pair.first, ask(source, target, kind=Kind.CONNECT, port=PORT + 1, expected=False))
    assert refused == Result(Outcome.NOTHING, "connection refused")


@BOTH
def test_echo_requests_need_no_capability(pair: Pair, source: str, target: str) -> None:
    assert probed(pair.first, ask(source, target, kind=Kind.ECHO)) == [Result(Outcome.ANSWERED)]
    request = "icmp type echo-request" if "." in target else "icmpv6 type echo-request"
    with dropped(pair.second, request):
        (lost,) = probed(pair.first, ask(source, target, kind=Kind.ECHO, expected=False))
    assert lost == Result(Outcome.NOTHING, "timed out")


def test_echo_requests_that_the_pod_does_not_permit_are_said_to_be_so(pair: Pair) -> None:
    assert pair.first.run("sysctl", "-qw", "net.ipv4.ping_group_range=1 0").returncode == 0
    try:
        (result,) = probed(pair.first, ask("10.7.0.11", "10.7.0.12", kind=Kind.ECHO))
    finally:
        pair.first.run("sysctl", "-qw", f"net.ipv4.ping_group_range={_USER} {_USER}")
    assert result.outcome is Outcome.NOT_PERMITTED


def test_an_address_that_the_pod_does_not_have(pair: Pair) -> None:
    (result,) = probed(pair.first, ask("10.7.0.99", "10.7.0.12", expected=False))
    assert result == Result(Outcome.ABSENT, "no link has 10.7.0.99")


def test_results_are_in_the_order_of_the_probes(pair: Pair) -> None:
    other = ask("10.7.0.11", "10.7.0.12", identity="pod-3", expected=False)
    results = probed(pair.first, other, ask("10.7.0.11", "10.7.0.12"), other, ask("fd07::11", "fd07::12"))
    assert [each.outcome for each in results] == [Outcome.OTHER, Outcome.ANSWERED, Outcome.OTHER, Outcome.ANSWERED]


def test_probes_that_are_not_json_end_with_status_2(pair: Pair) -> None:
    ended = pair.first.run(str(BINARIES / "contrailctl"), "check", "probe", input="[{")
    assert (ended.returncode, ended.stderr[:26]) == (2, "contrailctl: check probe: ")
