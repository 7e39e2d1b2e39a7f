"""Fuzzing: for any bytes of the daemon, in any pieces, and any input of the runtime, the shim follows the protocol.

Models of a few lines state what the protocol demands. The binary is the one with sanitizers. FUZZ_SECONDS=600 runs
longer.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.shim import ADD, ANSWER, ScriptedDaemon, Shim, as_file

SECONDS = int(os.environ.get("FUZZ_SECONDS", "2"))
THOROUGHLY = settings(
    max_examples=SECONDS * 50,  # about as many fit into a second
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
OUTPUT_LIMIT, INPUT_LIMIT, ENVIRONMENT_LIMIT = 1024 * 1024, 1024 * 1024, 64 * 1024

pytestmark = pytest.mark.timeout(SECONDS * 10 + 60)


class Verdict(NamedTuple):
    """Exit status; the output that is printed, None if the shim prints an error of its own; and the code of that."""

    status: int
    output: bytes | None
    code: int = 0


def verdict(sent: bytes) -> Verdict:
    """Returns the verdict for the bytes of a daemon that then closes the connection.

    There is at least one: a request whose connection ends without any is repeated.
    """
    acknowledgement, header, rest = sent[:1], sent[1:9], sent[9:]
    if acknowledgement == b"\1" and not header:
        return Verdict(1, None, 11)
    if acknowledgement != b"\1" or len(header) < ANSWER.size:
        return Verdict(1, None, 107)
    status, size = ANSWER.unpack(header)
    if status > 1 or size > OUTPUT_LIMIT or len(rest) != size:
        return Verdict(1, None, 107)
    return Verdict(status, rest)


long_outputs = st.integers(0, 20_000) | st.integers(OUTPUT_LIMIT - 2, OUTPUT_LIMIT + 2)
outputs = st.binary(max_size=300) | long_outputs.map(lambda size: b"x" * size)
answers = st.builds(
    lambda status, output: b"\1" + ANSWER.pack(status, len(output)) + output, st.integers(0, 1), outputs
)
numbers = st.integers(0, 40) | st.integers(0, 2**32 - 1)
acknowledgements = st.just(b"\1") | st.binary(min_size=1, max_size=1)
lies = st.tuples(acknowledgements, st.builds(ANSWER.pack, numbers, numbers), outputs).map(b"".join)
broken = st.builds(lambda whole, end: whole[:end], answers | lies, st.integers(1, 12))


@THOROUGHLY
@given(
    sent=answers | lies | broken | st.binary(min_size=1, max_size=40), cuts=st.lists(st.integers(0, 400), max_size=6)
)
@example(sent=b"\1" + ANSWER.pack(0, 0) + b"x", cuts=[])
@example(sent=b"\1" + ANSWER.pack(0, OUTPUT_LIMIT) + b"x" * OUTPUT_LIMIT, cuts=[])
@example(sent=b"\1" + ANSWER.pack(0, OUTPUT_LIMIT + 1) + b"x" * (OUTPUT_LIMIT + 1), cuts=[])
def test_any_response_gets_the_verdict_of_the_protocol(
    sanitized: Shim, daemon: ScriptedDaemon, sent: bytes, cuts: list[int]
) -> None:
    with open(as_file(b""), "rb") as printed, sanitized.started(ADD, b"{}", stdout=printed.fileno()) as running:
        with daemon.accept() as connection:
            connection.receive()
            with suppress(BrokenPipeError, ConnectionResetError):  # it has seen enough
                for piece in pieces(sent, cuts):
                    connection.socket.sendall(piece)
                connection.end()
                assert connection.receipt() == (b"" if verdict(sent).output is None else b"\1")
        outcome = running.outcome()
        printed.seek(0)
        output = printed.read()
    assert (outcome.status, outcome.stderr) == (verdict(sent).status, b"")
    if verdict(sent).output is None:
        assert json.loads(output)["code"] == verdict(sent).code
    else:
        assert output == verdict(sent).output


def pieces(sent: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Yields the pieces to send: surplus bytes go with the last announced ones; the shim does not wait for them."""
    promised = 9 + (ANSWER.unpack(sent[1:9])[1] if len(sent) >= 9 else 0)
    ends = sorted(cut for cut in cuts if 0 < cut < min(promised, len(sent)))
    return (sent[start:end] for start, end in zip([0, *ends], [*ends, len(sent)], strict=True))


text = st.binary(max_size=40).map(lambda some: some.replace(b"\0", b""))
long_text = text | st.integers(0, ENVIRONMENT_LIMIT + 1000).map(lambda size: b"v" * size)
names = text.map(lambda some: some.replace(b"=", b"") or b"X")
variables = st.dictionaries(names.map(lambda name: b"CNI_" + name) | names, long_text, max_size=8)
paths = text.map(lambda some: b"/none/" + some)
inputs = st.binary(max_size=2000) | st.integers(INPUT_LIMIT - 2, INPUT_LIMIT + 2).map(lambda size: b"i" * size)


@THOROUGHLY
@given(given_variables=variables, netns=paths, stdin=inputs)
def test_any_call_is_forwarded_or_rejected(
    sanitized: Shim, daemon: ScriptedDaemon, given_variables: dict[bytes, bytes], netns: bytes, stdin: bytes
) -> None:
    environment = {**given_variables, b"CNI_COMMAND": b"DEL", b"CNI_NETNS": netns}
    ours = {key + b"=" + value for key, value in environment.items() if key.startswith(b"CNI_")}
    too_large = 4 if sum(len(each) + 1 for each in ours) > ENVIRONMENT_LIMIT else 6 if len(stdin) > INPUT_LIMIT else 0
    with sanitized.started(environment, stdin) as running:
        if not too_large:
            connection, received = daemon.take()
            with connection:
                connection.answer(0, b"")
            assert set(received.variables) == ours
            assert received.stdin == stdin
            assert received.netns == errno.ENOENT
        outcome = running.outcome()
    assert outcome.stderr == b""
    assert (json.loads(outcome.stdout)["code"] if outcome.stdout else 0) == too_large


any_path = st.integers(0, 300).flatmap(lambda size: st.binary(min_size=size, max_size=size))


@THOROUGHLY
@given(path=any_path.map(lambda some: b"/dev/null/" + some.replace(b"\0", b"")))
@example(path=b"/dev/null/" + b"\xff" * 300)
def test_errors_are_one_line_of_json(sanitized: Shim, path: bytes) -> None:
    outcome = sanitized.run({b"CNI_COMMAND": b"ADD", b"CONTRAIL_CNI_SOCKET": path})
    document = json.loads(outcome.stdout.decode("ascii"))
    shown = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in path[:256])
    assert document["code"] == (11 if len(path) < 108 else 4)
    assert document["details"] == shown
    assert (outcome.status, outcome.stdout.count(b"\n"), outcome.stderr) == (1, 1, b"")
