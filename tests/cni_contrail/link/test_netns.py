"""Opening network namespaces, and entering them with a thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cni_contrail.link.errors import NetnsError
from cni_contrail.link.netns import InNetns, is_own_netns, open_netns
from tests.support.netns import Netns


def own_netns_id() -> str:
    return os.readlink("/proc/thread-self/ns/net")


def test_a_namespace_is_opened_by_its_path(sandbox: Netns) -> None:
    fd = open_netns(sandbox.path)
    try:
        with sandbox.inside():
            assert is_own_netns(fd)
        assert not is_own_netns(fd)
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_a_namespace_is_opened_by_the_path_of_a_process_in_it() -> None:
    fd = open_netns("/proc/self/ns/net")
    try:
        assert is_own_netns(fd)
    finally:
        os.close(fd)


def test_a_missing_path_is_an_error() -> None:
    message = r"^network namespace /run/netns/gone: cannot open: No such file or directory$"
    with pytest.raises(NetnsError, match=message):
        open_netns("/run/netns/gone")


def test_an_invalid_path_is_an_error() -> None:
    with pytest.raises(
        NetnsError, match=r"^network namespace .*: cannot open: .*embedded null (byte|character in path)$"
    ):
        open_netns("/run/netns/\0")


def test_an_empty_path_is_an_error() -> None:
    with pytest.raises(NetnsError, match=r"^network namespace : cannot open: No such file or directory$"):
        open_netns("")


def test_a_file_is_not_a_network_namespace(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(NetnsError, match=f"^{file} is not a network namespace$"):
        open_netns(str(file))


def test_a_directory_is_not_a_network_namespace(tmp_path: Path) -> None:
    with pytest.raises(NetnsError, match=f"^{tmp_path} is not a network namespace$"):
        open_netns(str(tmp_path))


def test_a_device_is_not_a_network_namespace() -> None:
    with pytest.raises(NetnsError, match=r"^/dev/null is not a network namespace$"):
        open_netns("/dev/null")


def test_a_pipe_is_not_a_network_namespace_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NetnsError, match=r"pipe is not a network namespace$"):
        open_netns(str(tmp_path / "pipe"))


@pytest.mark.parametrize("kind", ["mnt", "uts", "ipc", "pid", "user"])
def test_a_namespace_of_another_kind_is_not_a_network_namespace(kind: str) -> None:
    with pytest.raises(NetnsError, match=f"^/proc/self/ns/{kind} is not a network namespace$"):
        open_netns(f"/proc/self/ns/{kind}")


def test_a_rejected_path_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(NetnsError):
        open_netns(str(tmp_path))
    assert os.listdir("/proc/self/fd") == before


def test_a_path_without_read_permission_is_an_error(tmp_path: Path) -> None:
    """As another user: root may read everything."""
    code = f"""
import os, sys
sys.path[:] = {sys.path!r}
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.netns import open_netns
os.setuid(65534)
try:
    open_netns({str(tmp_path / "closed")!r})
except NetnsError as error:
    print(error)
"""
    (tmp_path / "closed").touch(mode=0o600)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip().endswith("cannot open: Permission denied")


def test_a_thread_enters_the_namespace_and_returns(sandbox: Netns, netns_fd: int) -> None:
    home = own_netns_id()
    with InNetns(netns_fd):
        assert own_netns_id() != home
        assert is_own_netns(netns_fd)
    assert own_netns_id() == home


def test_a_thread_returns_after_an_error_too(netns_fd: int) -> None:
    home = own_netns_id()

    def fail() -> None:
        with InNetns(netns_fd):
            raise KeyError("in there")

    with pytest.raises(KeyError):
        fail()
    assert own_netns_id() == home


def test_entering_leaves_no_descriptor_open(netns_fd: int) -> None:
    with InNetns(netns_fd):
        pass
    before = os.listdir("/proc/self/fd")
    with InNetns(netns_fd):
        pass
    assert os.listdir("/proc/self/fd") == before


def test_a_descriptor_of_something_else_cannot_be_entered(tmp_path: Path) -> None:
    home = own_netns_id()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(NetnsError, match=r"^network namespace: cannot enter: Invalid argument$"), InNetns(fd):
            pass
    finally:
        os.close(fd)
    assert own_netns_id() == home


def test_a_thread_that_cannot_return_exits_the_process(sandbox: Netns) -> None:
    code = f"""
import os, sys
sys.path[:] = {sys.path!r}
from cni_contrail.link import netns
fd = netns.open_netns({sandbox.path!r})
try:
    with netns.InNetns(fd) as visit:
        def refuse(fd):
            raise PermissionError(1, "Operation not permitted")
        netns._setns = refuse
finally:
    print("went on")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (os.EX_SOFTWARE, "")
    assert done.stderr == "cannot return from a sandbox's network namespace: Operation not permitted\n"
