"""Tests of the namespaces of networks: created, found again and deleted, whatever is left of them."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cni_contrail.datapath.namespaces import Namespaces, name_of
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.netns import own_netns_identity


@pytest.fixture
def vni() -> Iterator[int]:
    number = 15_000_000 + os.getpid() % 1_000_000
    yield number
    Namespaces().delete(number)


def identity(netns: int) -> tuple[int, int]:
    status = os.fstat(netns)
    os.close(netns)
    return status.st_dev, status.st_ino


def test_a_namespace_is_created_once_and_found_by_ip(vni: int) -> None:
    namespaces = Namespaces()
    own = own_netns_identity()
    first = identity(namespaces.open(vni))
    assert identity(namespaces.open(vni)) == first
    assert own_netns_identity() == own
    assert vni in namespaces.existing()
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True, timeout=10).stdout
    assert name_of(vni) in listed.split()


def test_a_deleted_namespace_is_gone(vni: int) -> None:
    namespaces = Namespaces()
    first = identity(namespaces.open(vni))
    namespaces.delete(vni)
    namespaces.delete(vni)
    assert vni not in namespaces.existing()
    assert not os.path.lexists(namespaces.path(vni))
    assert first


def test_a_file_that_a_lost_mount_left_is_used_again(vni: int) -> None:
    namespaces = Namespaces()
    identity(namespaces.open(vni))
    subprocess.run(["umount", namespaces.path(vni)], check=True, timeout=10)
    assert vni in namespaces.existing()
    identity(namespaces.open(vni))
    subprocess.run(["ip", "netns", "exec", name_of(vni), "true"], check=True, timeout=10)


def test_files_of_others_are_not_namespaces_of_networks(tmp_path: Path) -> None:
    for name in ("contrail-", "contrail-x", "contrail-01", "contrail-1x", "other-1", "contrail-123456789"):
        (tmp_path / name).touch()
    assert Namespaces(str(tmp_path)).existing() == set()


def test_a_directory_that_does_not_exist_has_no_namespaces(tmp_path: Path) -> None:
    assert Namespaces(f"{tmp_path}/none").existing() == set()


def test_a_path_that_cannot_be_created_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "contrail-7").mkdir()
    try:
        with pytest.raises(NetnsError, match="contrail-7"):
            Namespaces(str(tmp_path)).open(7)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True, timeout=10)  # was made a mount of its own


def test_many_threads_create_namespaces_without_leaving_their_own(vni: int) -> None:
    namespaces = Namespaces()
    own = own_netns_identity()
    numbers = range(14_000_000 + vni % 1000 * 10, 14_000_000 + vni % 1000 * 10 + 8)
    try:
        with ThreadPoolExecutor(8) as pool:
            created = list(pool.map(lambda number: identity(namespaces.open(number)), numbers))
        assert len(set(created)) == len(numbers)
        assert own_netns_identity() == own
    finally:
        for number in numbers:
            namespaces.delete(number)


def test_processes_that_create_one_namespace_at_the_same_time_leave_one_mount(tmp_path: Path) -> None:
    for attempt in range(20):
        directory = tmp_path / str(attempt)
        namespaces = Namespaces(str(directory))
        try:
            with ThreadPoolExecutor(8) as pool:
                assert len(set(pool.map(lambda _, each=namespaces: identity(each.open(7)), range(8)))) == 1
            assert mounts_below(directory) == [str(directory), namespaces.path(7)]
            namespaces.delete(7)
            assert mounts_below(directory) == [str(directory)]
        finally:
            for path in reversed(mounts_below(directory)):
                subprocess.run(["umount", path], check=True, timeout=10)


def mounts_below(directory: Path) -> list[str]:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [path for path in mounts if path.startswith(str(directory))]
