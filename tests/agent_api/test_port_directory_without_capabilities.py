"""Folders that Contrail's CNI plugin makes, of mode 0644, are no obstacle for an agent in a container."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_api.test_port_directory import VM_NAME, contrail_plugin_file
from tests.support.virtual_machines import SAMPLE_VMI

WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all")
CALLS = {
    "loaded": "assert len(directory.load()) == 1",
    "replaced": "directory.change(write=[port])",
    "removed": "directory.change(remove=[port])",
}
PROGRAM = """
import sys
import msgspec
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
directory = PortDirectory(sys.argv[1])
port = msgspec.json.decode(sys.argv[2], type=ContainerPort)
"""


@pytest.mark.parametrize("call", CALLS)
def test_a_file_in_such_a_folder_is(tmp_path: Path, call: str) -> None:
    file = tmp_path / "ports" / "vm" / VM_NAME / SAMPLE_VMI
    file.parent.mkdir(parents=True)
    (tmp_path / "ports" / "unfinished" / "ports").mkdir(parents=True)
    file.write_text(contrail_plugin_file())
    file.parent.chmod(0o644)
    python = (sys.executable, "-c", PROGRAM + CALLS[call], str(tmp_path / "ports"))
    newer = contrail_plugin_file(**{"vm-id": "newer"})
    subprocess.run([*WITHOUT_CAPABILITIES, *python, newer], check=True, timeout=30)
    assert file.exists() == (call != "removed")
    assert not file.exists() or ("newer" in file.read_text()) == (call == "replaced")
