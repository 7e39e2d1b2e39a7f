"""VERSION works without a daemon, with the same bytes as from the entry point."""

import subprocess

import pytest

from tests.support.plugin import COMMAND
from tests.support.shim import STEP_TIMEOUT, ScriptedDaemon, Shim

INPUTS = [
    b"",
    b"{}",
    b'{"cniVersion": "0.4.0"}',
    b'{"cniVersion": "9.9.9"}',
    b"no JSON",
    b'{"cniVersion": 5}',
    b"x" * 50000,
]
DUMMIES = dict.fromkeys(("CNI_NETNS", "CNI_IFNAME", "CNI_PATH", "CNI_CONTAINERID"), "dummy")


def entry_point(environment: dict[str, str], stdin: bytes) -> tuple[int, bytes, bytes]:
    done = subprocess.run(COMMAND, env=environment, input=stdin, capture_output=True, timeout=STEP_TIMEOUT)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("stdin", INPUTS, ids=range(len(INPUTS)))
def test_version_equals_that_of_the_entry_point(shim: Shim, daemon: ScriptedDaemon, stdin: bytes) -> None:
    for environment in ({"CNI_COMMAND": "VERSION"}, {"CNI_COMMAND": "VERSION", **DUMMIES}):
        outcome = shim.run(environment, stdin)
        assert outcome == entry_point(environment, stdin)
        assert outcome.status == 0
    daemon.expect_nobody()


@pytest.mark.parametrize("environment", [{}, {"CNI_COMMAND": ""}, DUMMIES, {"cni_command": "ADD"}], ids=str)
def test_output_without_a_command_equals_that_of_the_entry_point(
    shim: Shim, daemon: ScriptedDaemon, environment: dict[str, str]
) -> None:
    outcome = shim.run(environment, b"{}")
    assert outcome == entry_point(environment, b"{}")
    assert (outcome.status, outcome.stdout) == (0, b"")
    daemon.expect_nobody()


def test_version_needs_no_standard_input(shim: Shim) -> None:
    wrapped = ("sh", "-c", 'exec "$@" <&-', "sh")
    assert shim.run({"CNI_COMMAND": "VERSION"}, prefix=wrapped) == entry_point({"CNI_COMMAND": "VERSION"}, b"")


def test_arguments_are_ignored(installed: Shim) -> None:
    for argument in ("--help", "x" * 10_000):
        done = subprocess.run([installed.binary, argument], env={"CNI_COMMAND": "VERSION"}, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == entry_point({"CNI_COMMAND": "VERSION"}, b"")
