"""Import time of the link modules on the path of ADD: it is part of every pod start."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[3])
PATH = ["check", "isolate", "make", "remove", "defaults", "announce", "plan", "netns"]
SLOW = [
    "typing",
    "re",
    "ipaddress",
    "dataclasses",
    "logging",
    "ctypes",
    "pathlib",
    "subprocess",
    "pyroute2",
]


def imported_by(statement: str) -> set[str]:
    code = f"import sys; sys.path.insert(0, {ROOT!r})\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", PATH)
def test_no_slow_module_is_imported(module: str) -> None:
    assert imported_by(f"import cni_contrail.link.{module}").isdisjoint(SLOW)


def test_hardly_anything_beyond_sockets_is_imported() -> None:
    ours = imported_by("import cni_contrail.link.make, cni_contrail.link.remove, cni_contrail.link.defaults")
    beyond = ours - imported_by("import socket, struct, errno, fcntl, array")
    allowed = {"__future__", "_functools", "functools", "contextlib"}
    assert {name for name in beyond if not name.startswith("cni_contrail")} <= allowed
