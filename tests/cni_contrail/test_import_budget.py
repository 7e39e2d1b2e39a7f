"""Imports dominate the duration of a call: only the standard library, and only the modules listed here."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import by_entry_point
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod

BARE = set(
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout.split()
)
ALLOWED = {
    "_collections_abc": "behind `collections`",
    "_json": "behind `json`",
    "_sre": "behind `re`",
    "_socket": "behind `socket`",
    "_struct": "behind `struct`",
    "array": "behind `socket`",
    "collections": "behind `re`, and the abstract types of annotations",
    "contextlib": "context managers: locks, sandboxes, undoing",
    "copyreg": "behind `re`",
    "enum": "behind `re`; the table of error codes",
    "errno": "error numbers of the kernel",
    "fcntl": "the lock of a container; asks the kernel for links by name",
    "functools": "behind `re`",
    "gc": "is turned off",
    "genericpath": "behind `os.path`",
    "io": "behind `open`",
    "itertools": "behind `collections`",
    "json": "network configuration, results, records, the agent",
    "keyword": "behind `collections`",
    "math": "behind `selectors`",
    "operator": "behind `collections`",
    "os": "files, descriptors, the environment",
    "posixpath": "behind `os.path`",
    "re": "behind `json`; names and uuids",
    "reprlib": "behind `collections`",
    "select": "behind `selectors`",
    "selectors": "behind `socket`",
    "socket": "the agent, rtnetlink, addresses in canonical form",
    "stat": "behind `os`",
    "struct": "rtnetlink messages",
    "time": "deadlines and log lines",
    "types": "behind `enum`",
    "__future__": "annotations that are not evaluated",
    "_operator": "behind `operator`",
    "_functools": "behind `functools`",
    "_collections": "behind `collections`",
    "_stat": "behind `stat`",
    "cni_contrail": "the plugin itself",
}
ALLOWED_FOR_ADD = {
    "hashlib": "names of host ends",
    "_hashlib": "behind `hashlib`",
    "_blake2": "behind `hashlib`",
}
ALLOWED_BEFORE_3_12 = {
    "ctypes": "setns(2), which `os` has from Python 3.12 on",
    "_ctypes": "behind `ctypes`",
}
FORBIDDEN = (
    "argparse",
    "asyncio",
    "dataclasses",
    "email",
    "http",
    "inspect",
    "ipaddress",
    "logging",
    "ssl",
    "subprocess",
    "typing",
)

PROGRAM = """
import os, sys
sys.path.insert(0, {root!r})
from cni_contrail.plugin import main
status = main()
with open({report!r}, "w") as report:
    report.write(" ".join(sys.modules))
os._exit(status)
"""


@pytest.fixture
def modules(plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """Runs a call and returns the top-level modules of the standard library that it imported."""
    report = tmp_path / "modules"
    root = str(Path(__file__).parents[2])
    program = PROGRAM.format(root=root, report=str(report))
    monkeypatch.setattr("tests.support.plugin_callers.COMMAND", [sys.executable, "-I", "-S", "-c", program])

    def modules(command: str, pod: PodSandbox) -> set[str]:
        process = plugin.start_with(plugin.environment(command, pod), json.dumps(plugin.config(version="1.1.0")))
        _, stderr = process.communicate(timeout=20)
        assert process.returncode == 0, stderr
        return {name.partition(".")[0] for name in report.read_text().split()} - BARE

    return modules


@by_entry_point
def test_add_and_del_import_only_allowed_modules(
    agent: ScriptedAgent, pod: PodSandbox, serve_pod: ServePod, modules: Callable[..., set[str]]
) -> None:
    serve_pod(agent, 2)
    old = set(ALLOWED_BEFORE_3_12) if sys.version_info < (3, 12) else set()
    assert modules("ADD", pod) <= {*ALLOWED, *ALLOWED_FOR_ADD, *old}
    assert modules("DEL", pod) <= {*ALLOWED, *old}


def test_expensive_modules_are_not_allowed() -> None:
    assert not {*ALLOWED, *ALLOWED_FOR_ADD, *ALLOWED_BEFORE_3_12} & set(FORBIDDEN)


@by_entry_point
def test_status_imports_only_allowed_modules(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, modules: Callable[..., set[str]]
) -> None:
    assert modules("STATUS", pod) <= {*ALLOWED}


@by_entry_point
def test_version_imports_neither_hashlib_nor_ctypes(
    plugin: Plugin, pod: PodSandbox, modules: Callable[..., set[str]]
) -> None:
    assert not modules("VERSION", pod) & {"hashlib", "ctypes"}
