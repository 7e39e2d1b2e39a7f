"""A full disk: the node reports it, retries, and goes on once there is space; nothing is half written."""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

DISK = 16 * 1024 * 1024


@pytest.fixture
def disk(node: EmbeddedProcess) -> Iterator[Path]:
    """The data directory of the node, on a small file system of its own."""
    node.data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(node.data)], check=True)
    try:
        yield node.data
    finally:
        if node.is_running:
            node.kill()
        subprocess.run(["umount", str(node.data)], check=True)


def fill(disk: Path) -> Path:
    """Takes all space; returns the file to delete."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


def is_full(node: EmbeddedProcess) -> bool:
    """Whether the node is not ready since its disk is full."""
    status, answer = node.ask("/readyz")
    return status == 503 and any("the disk is full" in reason for reason in answer["reasons"])


def add_pods(node: EmbeddedProcess, *, first: int = 0) -> None:
    write(node.manifests / "nad.yaml", nad("blue", cidr="10.1.0.0/16"))
    for number in range(first, first + 100):
        write(node.manifests / f"pod-{number}.yaml", pod(f"web-{number}", networks="blue,blue"))


def check_that_all_are_served(node: EmbeddedProcess, count: int) -> None:
    node.wait_until_ready()
    node.wait_until(lambda: list(node.pod_states().values()).count("Ready") == count, what="serving")
    node.wait_until_ready()
    addresses = [
        (item["interface"]["networkUuid"], address["address"])
        for item in node.items("interfaces")
        for address in item["interface"]["addresses"]
    ]
    assert len(addresses) == len(set(addresses)) == 3 * count
    assert "Traceback" not in node.log.read_text()


def check_store(node: EmbeddedProcess, work: Path) -> None:
    """Each address belongs to a virtual machine, and the file is intact."""
    copy = work / "copy"
    shutil.copytree(node.data, copy, ignore=shutil.ignore_patterns("filler", "*.sock"))
    with sqlite3.connect(copy / "store.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        allocated = {owner for (owner,) in db.execute("SELECT owner FROM addresses WHERE held_until IS NULL")}
        machines = "".join(body.decode() for (body,) in db.execute("SELECT body FROM machines"))
    db.close()
    shutil.rmtree(copy)
    assert [owner for owner in allocated if owner not in machines] == []


def test_pods_are_served_once_there_is_space(node: EmbeddedProcess, disk: Path, tmp_path: Path) -> None:
    add_pods(node)
    node.start()
    check_that_all_are_served(node, 100)
    filler = fill(disk)
    add_pods(node, first=100)
    node.wait_until(lambda: is_full(node), what="full")
    assert list(node.pod_states().values()).count("Ready") >= 100
    filler.unlink()
    check_that_all_are_served(node, 200)
    check_store(node, tmp_path)


def test_the_reason_ends_although_nothing_else_is_written(node: EmbeddedProcess, disk: Path) -> None:
    add_pods(node)
    node.start()
    check_that_all_are_served(node, 100)
    filler = fill(disk)
    for number in range(100):
        (node.manifests / f"pod-{number}.yaml").unlink()
    node.wait_until(lambda: is_full(node), what="full")
    filler.unlink()
    node.wait_until_ready()
    node.wait_until(lambda: node.pod_states() == {}, what="released")


def test_a_node_starts_on_a_full_disk_once_there_is_space(node: EmbeddedProcess, disk: Path) -> None:
    filler = fill(disk)
    add_pods(node)
    node.launch()
    node.wait_until(lambda: "the disk is full" in node.log.read_text(), what="full")
    filler.unlink()
    check_that_all_are_served(node, 100)


@pytest.mark.parametrize("free", [3, 4, 7, 9, 10])
def test_a_node_starts_once_it_can_create_its_files(node: EmbeddedProcess, disk: Path, free: int) -> None:
    """File systems also run out of inodes: here only so many files and directories can be created."""
    subprocess.run(["mount", "-o", f"remount,nr_inodes={free + 1}", str(disk)], check=True)
    add_pods(node)
    node.launch()
    node.wait_until(lambda: "(retry in" in node.log.read_text(), what="full")
    subprocess.run(["mount", "-o", "remount,nr_inodes=10000", str(disk)], check=True)
    check_that_all_are_served(node, 100)


def test_a_restart_on_a_full_disk_goes_on_once_there_is_space(
    node: EmbeddedProcess, disk: Path, tmp_path: Path
) -> None:
    add_pods(node)
    node.start()
    check_that_all_are_served(node, 100)
    filler = fill(disk)
    add_pods(node, first=100)
    node.wait_until(lambda: is_full(node), what="full")
    node.kill()
    node.launch()
    node.wait_until(lambda: is_full(node) or node.log.read_text().count("the disk is full") > 1, what="full")
    filler.unlink()
    check_that_all_are_served(node, 200)
    check_store(node, tmp_path)


def test_a_node_stops_in_time_on_a_full_disk(node: EmbeddedProcess, disk: Path) -> None:
    add_pods(node)
    node.start()
    check_that_all_are_served(node, 100)
    fill(disk)
    add_pods(node, first=100)
    node.wait_until(lambda: is_full(node), what="full")
    assert node.stop() == 0
    assert "Traceback" not in node.log.read_text()
