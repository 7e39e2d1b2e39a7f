"""Which directories only receive mounts of another mount namespace, as the kernel shows them."""

import subprocess
import sys
from pathlib import Path

import pytest

_ASK = "import sys; from cni_contrail.datapath.mount_propagation import is_slave; print(is_slave(sys.argv[1]))"
_HOST = "mkdir host here; mount -t tmpfs none host; mkdir host/netns; mount --make-shared host"
_CONTAINER = f"{_HOST}; mount --bind host/netns here; mount --make-slave here"


@pytest.mark.parametrize(
    ("script", "asked", "slave"),
    [
        pytest.param(_HOST, "host", False, id="shared, as on a host"),
        pytest.param(_HOST, "host/netns", False, id="a directory of a shared mount"),
        pytest.param("mkdir here; mount -t tmpfs none here", "here", False, id="private"),
        pytest.param(_CONTAINER, "here", True, id="slave, as in a container"),
        pytest.param(f"{_CONTAINER}; mount --make-shared here", "here", True, id="slave and shared, as in a service"),
        pytest.param(f"{_CONTAINER}; mount --make-private here", "here", False, id="no longer a slave"),
        pytest.param(_CONTAINER, "here/missing/below", True, id="missing, below a slave"),
        pytest.param(f"{_CONTAINER}; mount -t tmpfs none here", "here", False, id="hidden by another mount"),
        pytest.param(f"{_HOST}; mkdir 'he re'; mount --bind host 'he re'; mount --make-slave 'he re'", "he re", True,
                     id="a name with a space"),
    ],
)  # fmt: skip
def test_a_mount_that_only_receives_is_a_slave(tmp_path: Path, script: str, asked: str, slave: bool) -> None:
    command = f"cd {tmp_path}; {script}; exec {sys.executable} -c '{_ASK}' '{tmp_path}/{asked}'"
    within = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", command]
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        within, check=True, stdout=subprocess.PIPE, text=True, timeout=20, env={"PYTHONPATH": str(root)}
    )
    assert ended.stdout.strip() == str(slave)
