"""`scripts/pytest` runs failed tests once more where CI is set, and only there."""

import os
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[1] / "scripts/pytest"
_TESTS = """
import pathlib

import pytest

pytestmark = pytest.mark.xdist_group("kubernetes/some")

def test_fails_always():
    assert not {always}

def test_fails_once():
    first = pathlib.Path(__file__).with_name("first")
    failed_before = first.exists()
    first.touch()
    assert failed_before

def test_passes():
    pass
"""


@pytest.mark.parametrize(
    ("ci", "always", "status", "ends"),
    [
        ("true", False, 0, "1 passed, 2 deselected"),
        ("true", True, 1, "1 failed, 1 passed"),
        ("", False, 1, "1 failed, 2 passed"),
    ],
    ids=["fails once in CI", "fails twice in CI", "fails elsewhere"],
)
@pytest.mark.parametrize("options", [[], ["-n1", "--dist=loadgroup"]], ids=["alone", "in parallel groups"])
def test_what_fails_counts_if_it_fails_again(
    tmp_path: Path, options: list[str], ci: str, always: object, status: int, ends: str
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(_TESTS.format(always=always))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    command = [str(_SCRIPT), "-q", *options, f"--rootdir={tmp_path}", str(file)]
    ended = subprocess.run(command, env={**environment, "CI": ci}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith(ends), ended.stdout
