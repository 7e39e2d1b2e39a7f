"""Nodes of a dump: what a damaged node answers ends up nowhere but in its own folder."""

import asyncio
import json
from pathlib import Path

import pytest

from contrail_config.kubernetes.pods import CreatedMetadata, Pod
from contrailctl.sysdump.archive import DumpFolder
from contrailctl.sysdump.nodes import dump_nodes

_PODS = {"node-1": Pod(CreatedMetadata(name="contrail-node-1", namespace="contrail"))}
_STRANGE = ("../README.txt", "..", "", "a\0b", "-r", "a\nb", "x" * 1000)


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a `kubectl` that prints the content of a file, and returns the file."""
    answer = tmp_path / "answer.json"
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec cat "{answer}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return answer


def test_pages_are_files_in_the_folder_of_the_node(tmp_path: Path, kubectl: Path) -> None:
    folder = DumpFolder(tmp_path / "dump")
    kubectl.write_text(json.dumps({"pages": {"agent-healthz": "ok\n", "cnid-adds": "[]"}, "problems": ["cnid: away"]}))
    asyncio.run(dump_nodes(_PODS, folder, kubectl=[], limit=10))
    assert (folder.root / "nodes/node-1/agent-healthz").read_text() == "ok\n"
    assert (folder.root / "nodes/node-1/cnid-adds").read_text() == "[]"
    assert folder.problems[0] == "nodes/node-1: cnid: away"


def test_a_page_whose_name_is_not_that_of_a_file_is_a_problem(tmp_path: Path, kubectl: Path) -> None:
    folder = DumpFolder(tmp_path / "dump")
    kubectl.write_text(json.dumps({"pages": dict.fromkeys(_STRANGE, "strange"), "problems": []}))
    asyncio.run(dump_nodes(_PODS, folder, kubectl=[], limit=10))
    assert not folder.root.exists(), "nothing was written"
    assert folder.problems[: len(_STRANGE)] == [
        f"nodes/node-1: page {name[:64]!r}: not the name of a file" for name in _STRANGE
    ]
