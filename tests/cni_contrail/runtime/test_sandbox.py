"""Named network namespaces, created without moving the caller's threads."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cni_contrail.runtime.errors import SandboxError
from cni_contrail.runtime.sandbox import NETNS_DIR, inside, make_sandbox, remove_sandbox

ROOT = Path(__file__).parents[3]


def own_namespace() -> str:
    return os.readlink("/proc/thread-self/ns/net")


@pytest.fixture
def name() -> Iterator[str]:
    chosen = f"ct-sandbox-{uuid.uuid4().hex[:12]}"
    yield chosen
    remove_sandbox(os.path.join(NETNS_DIR, chosen))


def test_ip_netns_lists_the_namespace(name: str) -> None:
    assert make_sandbox(name) == f"/run/netns/{name}"
    listed = subprocess.run(["ip", "-n", name, "-o", "link"], capture_output=True, text=True, check=True, timeout=10)
    assert [line.split(": ")[1] for line in listed.stdout.splitlines()] == ["lo"]


def test_the_caller_stays_in_its_namespace(name: str) -> None:
    before = own_namespace()
    path = make_sandbox(name)
    assert own_namespace() == before
    assert os.stat(path).st_ino != os.stat("/proc/thread-self/ns/net").st_ino


def test_many_threads_create_and_remove_concurrently(name: str) -> None:
    before = own_namespace()

    def make_and_remove(number: int) -> int:
        path = make_sandbox(f"{name}-{number}")
        inode = os.stat(path).st_ino
        remove_sandbox(path)
        assert own_namespace() == before
        return inode

    with ThreadPoolExecutor(max_workers=8) as pool:
        assert len(list(pool.map(make_and_remove, range(24)))) == 24
    assert not [entry for entry in os.listdir(NETNS_DIR) if entry.startswith(name)]


def test_no_thread_is_left(name: str) -> None:
    before = threading.active_count()
    make_sandbox(name)
    assert threading.active_count() == before


def test_an_existing_namespace_is_reported_and_kept(name: str) -> None:
    path = make_sandbox(name)
    inode = os.stat(path).st_ino
    with pytest.raises(SandboxError, match=f"{path}: already exists"):
        make_sandbox(name)
    assert os.stat(path).st_ino == inode


def test_a_name_that_is_no_file_name_is_rejected() -> None:
    with pytest.raises(SandboxError, match="cannot be created"):
        make_sandbox("no/such/place")


def test_a_removed_name_can_be_reused(name: str) -> None:
    path = make_sandbox(name)
    remove_sandbox(path)
    assert not os.path.exists(path)
    make_sandbox(name)


def test_removing_a_missing_namespace_is_no_error(name: str) -> None:
    remove_sandbox(os.path.join(NETNS_DIR, name))


def test_removing_an_unmounted_namespace_removes_the_file(name: str) -> None:
    path = make_sandbox(name)
    subprocess.run(["umount", path], check=True, timeout=10)
    remove_sandbox(path)
    assert not os.path.exists(path)


def test_a_failed_removal_is_reported() -> None:
    with pytest.raises(SandboxError, match=r"/proc/version: cannot be removed"):
        remove_sandbox("/proc/version")


class TestInside:
    def test_the_thread_and_its_children_are_in_the_namespace(self, name: str) -> None:
        path = make_sandbox(name)
        with inside(path):
            child = subprocess.run(["readlink", "/proc/self/ns/net"], capture_output=True, text=True, check=True)
            assert child.stdout.strip() == own_namespace() == f"net:[{os.stat(path).st_ino}]"

    def test_other_threads_stay_in_theirs(self, name: str) -> None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            before = pool.submit(own_namespace).result()
            with inside(make_sandbox(name)):
                assert pool.submit(own_namespace).result() == before

    def test_the_thread_returns_after_an_error(self, name: str) -> None:
        before = own_namespace()
        with pytest.raises(ZeroDivisionError), inside(make_sandbox(name)):
            _ = 1 / 0
        assert own_namespace() == before

    def test_no_descriptor_is_left_open(self, name: str) -> None:
        path = make_sandbox(name)
        before = len(os.listdir("/proc/self/fd"))
        with inside(path):
            pass
        assert len(os.listdir("/proc/self/fd")) == before

    @pytest.mark.parametrize("path", ["/run/netns/none", "/proc/version"])
    def test_a_path_that_is_no_namespace_is_rejected(self, path: str) -> None:
        with pytest.raises(SandboxError, match=f"{path}: cannot be entered"), inside(path):
            pass


def test_the_directory_becomes_a_shared_mount(name: str) -> None:
    """In a mount namespace with an empty /run, as after a boot."""
    program = (
        "from cni_contrail.runtime.sandbox import make_sandbox, remove_sandbox;"
        f"first, second = make_sandbox({name!r}), make_sandbox({name + '-2'!r});"
        "print(open('/proc/self/mountinfo').read());"
        "remove_sandbox(first); remove_sandbox(second)"
    )
    fresh = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$0" -c "$1"']
    ended = subprocess.run(
        [*fresh, sys.executable, program], capture_output=True, text=True, check=True, timeout=30, cwd=ROOT
    )
    mounts = [line for line in ended.stdout.splitlines() if line]
    newest = [line for line in mounts if line.split()[4] == NETNS_DIR][-1]
    assert " shared:" in newest
    assert sum(name in line for line in mounts) == 2
