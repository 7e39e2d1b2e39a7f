"""Namespaces that a process holds until somebody binds them on the host."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.held_namespaces import HeldNamespaces
from cni_contrail.datapath.namespaces import Namespaces, name_of, try_lock
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.link.errors import NetnsError
from tests.support.fake_clock import FakeClock

VNI = 12_000_000 + os.getpid() % 1_000_000
NAME = name_of(VNI)
_DELETE = """
import sys
from cni_contrail.datapath.namespaces import Namespaces
Namespaces(sys.argv[1]).delete(int(sys.argv[2]))
"""


def identity(netns: int) -> tuple[int, int]:
    status = os.fstat(netns)
    os.close(netns)
    return status.st_dev, status.st_ino


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """The directory on the host, a mount of its own."""
    folder = tmp_path / "netns"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], check=True, timeout=10)
    subprocess.run(["mount", "--make-shared", str(folder)], check=True, timeout=10)
    yield folder
    subprocess.run(["umount", "--recursive", "--lazy", str(folder)], check=True, timeout=10)


@pytest.fixture
def held(directory: Path) -> Iterator[HeldNamespaces]:
    namespaces = HeldNamespaces(str(directory))
    yield namespaces
    for vni in namespaces.existing():
        namespaces.delete(vni)


@pytest.fixture
def pin(directory: Path) -> Callable[[str, int], None]:
    """Binds a namespace as the shim does."""

    def bind(name: str, netns: int) -> None:
        (directory / name).touch()
        target = str(directory / name)
        subprocess.run(["mount", "--bind", f"/proc/{os.getpid()}/fd/{netns}", target], check=True, timeout=10)

    return bind


def test_a_namespace_is_created_once_and_leaves_no_file(held: HeldNamespaces, directory: Path) -> None:
    first = identity(held.open(VNI))
    assert identity(held.open(VNI)) == first
    assert held.existing() == {VNI}
    assert os.listdir(directory) == []


def test_the_lock_of_a_held_network_ends_with_its_owner(held: HeldNamespaces) -> None:
    with locked_network(held, VNI) as netns:
        other = os.open(f"/proc/self/fd/{netns}", os.O_RDONLY)
        assert not try_lock(other, fcntl.LOCK_SH)
    assert try_lock(other, fcntl.LOCK_SH)
    os.close(other)


def test_a_pinned_namespace_is_the_one_that_was_held(
    held: HeldNamespaces, pin: Callable[[str, int], None], directory: Path
) -> None:
    first = identity(held.open(VNI))
    assert identity(held.pinned_by(pin).open(VNI)) == first
    assert identity(Namespaces(str(directory)).open(VNI)) == first
    assert identity(held.open(VNI)) == first


def test_what_is_pinned_is_not_asked_for_again(held: HeldNamespaces, pin: Callable[[str, int], None]) -> None:
    asked: list[str] = []

    def counted(name: str, netns: int) -> None:
        asked.append(name)
        pin(name, netns)

    first = identity(held.pinned_by(counted).open(VNI))
    assert identity(held.pinned_by(counted).open(VNI)) == first
    assert asked == [NAME]


def test_another_namespace_that_was_pinned_first_takes_the_place(
    held: HeldNamespaces, pin: Callable[[str, int], None], directory: Path
) -> None:
    with locked_network(held, VNI) as mine:
        other = identity(Namespaces(str(directory)).open(VNI))
        assert not held.is_current(VNI, mine)
        assert identity(os.dup(mine)) != other
    assert identity(held.pinned_by(pin).open(VNI)) == other
    assert identity(held.open(VNI)) == other


def test_a_pinned_namespace_is_no_longer_held(held: HeldNamespaces, pin: Callable[[str, int], None]) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    os.close(held.open(VNI))
    assert len(os.listdir("/proc/self/fd")) == descriptors + 1
    os.close(held.pinned_by(pin).open(VNI))
    os.close(held.open(VNI))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_pin_that_is_not_seen_is_an_error_that_says_what_is_missing(held: HeldNamespaces) -> None:
    with pytest.raises(NetnsError, match=r"contrail-\d+: bound by the shim, but not seen.*HostToContainer"):
        held.pinned_by(lambda _name, _netns: None).open(VNI)


def test_a_held_network_that_is_not_desired_is_removed_after_a_while(held: HeldNamespaces) -> None:
    clock = FakeClock()
    reconciler = NodeReconciler(held, clock=clock)
    outcome = reconciler.reconcile([Network(VNI, 1400, (), ())])
    assert not outcome.problems
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([]).removed == {VNI}
    assert held.existing() == set()


def test_a_file_that_a_killed_shim_left_is_removed(held: HeldNamespaces, directory: Path) -> None:
    (directory / NAME).touch()
    clock = FakeClock()
    reconciler = NodeReconciler(held, clock=clock)
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([]).removed == {VNI}
    assert os.listdir(directory) == []


@pytest.mark.parametrize("propagation", ["slave", "private"])
def test_a_namespace_that_is_deleted_in_a_container_is_gone_on_the_host(directory: Path, propagation: str) -> None:
    namespaces = Namespaces(str(directory))
    os.close(namespaces.open(VNI))
    command = [sys.executable, "-c", _DELETE, str(directory), str(VNI)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    within = ["unshare", "--mount", "--propagation", propagation, *command]
    subprocess.run(within, check=True, timeout=20, env=environment)
    assert os.listdir(directory) == []
    assert namespaces.path(VNI) not in Path("/proc/self/mountinfo").read_text()
