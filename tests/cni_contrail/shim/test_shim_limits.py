"""Oversized or unreadable input is rejected before the daemon is called, with the codes of the specification."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugin import COMMAND
from tests.support.shim import ADD, STEP_TIMEOUT, ScriptedDaemon, Shim, ShimOutcome

ENVIRONMENT_LIMIT, INPUT_LIMIT = 64 * 1024, 1024 * 1024
COMPLETE = {**ADD, "CNI_CONTAINERID": "c", "CNI_NETNS": "/x", "CNI_IFNAME": "eth0", "CNI_PATH": "/x"}


def entry_point(*wrapped: str, stdin: bytes | None = None) -> bytes:
    """Returns the output of the entry point, behind a wrapping command, for a complete call."""
    command = [*wrapped, *COMMAND]
    return subprocess.run(command, env=COMPLETE, input=stdin, stdout=subprocess.PIPE, timeout=STEP_TIMEOUT).stdout


def error(outcome: ShimOutcome) -> Any:
    assert outcome.status == 1
    assert outcome.stdout.count(b"\n") == 1
    document = json.loads(outcome.stdout)
    assert document["cniVersion"] == "1.1.0"
    return document


def test_an_oversized_environment_is_error_4_and_names_the_variable(shim: Shim) -> None:
    room = ENVIRONMENT_LIMIT - len("CNI_COMMAND=ADD\0CNI_ARGS=\0")
    reported = error(shim.run({**ADD, "CNI_ARGS": "x" * (room + 1)}))
    assert (reported["code"], reported["msg"]) == (4, "CNI_ variables are longer than 65536 bytes")
    assert reported["details"].startswith("CNI_ARGS=xxx")


def test_an_oversized_variable_is_error_4(shim: Shim) -> None:
    reported = error(shim.run({**ADD, "CNI_" + "A" * 100_000: "x"}))
    assert reported["code"] == 4
    assert len(reported["details"]) == 256


def test_too_many_variables_are_error_4(shim: Shim) -> None:
    assert error(shim.run({**ADD, **{f"CNI_{number}": "" for number in range(20_000)}}))["code"] == 4


def test_other_variables_do_not_count(shim: Shim) -> None:
    assert error(shim.run({**ADD, "OTHER": "x" * 100_000}))["code"] == 11  # there is no daemon, that is all


@pytest.mark.parametrize("more", [1, 2, 1_000_000])
def test_an_oversized_configuration_is_error_6_as_in_the_entry_point(shim: Shim, more: int) -> None:
    document = b"{}".ljust(INPUT_LIMIT + more)
    answer = shim.run(COMPLETE, document)
    reported = error(answer)
    assert (reported["code"], reported["msg"]) == (6, "network configuration is longer than 1048576 bytes")
    assert entry_point(stdin=document) == answer.stdout


def test_the_largest_configuration_is_read_by_the_entry_point() -> None:
    reported = json.loads(entry_point(stdin=b"{}".ljust(INPUT_LIMIT)))
    assert (reported["code"], reported["msg"]) == (7, "missing network name")


def test_an_endless_configuration_is_error_6_as_in_the_entry_point(shim: Shim) -> None:
    with open("/dev/zero", "rb") as endless:
        answer = shim.run(COMPLETE, endless)
    assert error(answer)["code"] == 6
    assert entry_point("sh", "-c", 'exec "$@" </dev/zero', "sh") == answer.stdout


def test_a_rejected_call_does_not_reach_the_daemon(shim: Shim, daemon: ScriptedDaemon) -> None:
    error(shim.run(ADD, b"x" * (INPUT_LIMIT + 1)))
    daemon.expect_nobody()


@pytest.mark.parametrize("redirection", ["<&-", "0>/dev/null"])
def test_an_unreadable_input_is_error_5_as_in_the_entry_point(shim: Shim, redirection: str) -> None:
    wrapped = ("sh", "-c", f'exec "$@" {redirection}', "sh")
    reported = entry_point(*wrapped)
    assert shim.run(COMPLETE, prefix=wrapped).stdout == reported
    assert json.loads(reported)["code"] == 5


def test_a_directory_as_input_is_error_5(shim: Shim, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    reported = error(shim.run(ADD, folder))
    os.close(folder)
    assert (reported["code"], reported["msg"]) == (5, "error reading from stdin: Is a directory")


def test_an_input_that_times_out_is_error_5(sanitized: Shim) -> None:
    reader, writer = os.pipe()
    os.write(writer, b'{"name": ')
    reported = error(sanitized.run(ADD, reader))
    os.close(reader)
    os.close(writer)
    assert (reported["code"], reported["msg"]) == (5, "error reading from stdin: timed out after 2 s")


def test_a_nonblocking_input_is_polled(shim: Shim, daemon: ScriptedDaemon) -> None:
    reader, writer = os.pipe2(os.O_NONBLOCK)
    with shim.started(ADD, reader) as running:
        os.close(reader)
        os.write(writer, b"{")
        os.write(writer, b"}")
        os.close(writer)
        connection, received = daemon.take()
        with connection:
            connection.answer(0, b"")
        assert running.outcome().status == 0
    assert received.stdin == b"{}"


@pytest.mark.parametrize(
    ("socket", "shown"),
    [
        ("/" + "x" * 200, "/" + "x" * 200),
        ('/"quoted"\\' + "x" * 120, '/"quoted"\\' + "x" * 120),
        ("/\n\t\x7f\udcff\x01" + "x" * 120, "/\\x0a\\x09\\x7f\\xff\\x01" + "x" * 120),
        ("/é" + "x" * 1000, "/\\xc3\\xa9" + "x" * 253),  # 256 bytes of it
    ],
)
def test_an_oversized_socket_path_is_error_4_and_printable(shim: Shim, socket: str, shown: str) -> None:
    reported = error(shim.run({**ADD, "CONTRAIL_CNI_SOCKET": socket}))
    assert reported["code"] == 4
    assert reported["msg"] == "CONTRAIL_CNI_SOCKET: path is too long for a socket"
    assert reported["details"] == shown


def test_the_longest_socket_path_is_accepted(shim: Shim) -> None:
    longest = "/" + "x" * 106
    assert error(shim.run({**ADD, "CONTRAIL_CNI_SOCKET": longest}))["code"] == 11
    assert error(shim.run({**ADD, "CONTRAIL_CNI_SOCKET": longest + "x"}))["code"] == 4
