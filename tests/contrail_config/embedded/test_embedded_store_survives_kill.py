"""kill -9 during heavy writing: no acknowledged write is lost, none is partial, no address is allocated twice."""

import contextlib
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.contrail_config.embedded.heavy_writer import NETWORKS, POD_NETWORKS, heavy_writer
from tests.support.virtual_networks import start_pod


def write_until_killed(path: Path, *, after_lines: int) -> set[tuple[str, str]]:
    """Kills the writer after so many lines, and returns all its lines as pairs of word and uuid."""
    with heavy_writer(path) as (process, stdout):
        printed = [stdout.readline() for _ in range(after_lines)]
        process.kill()
        printed += stdout.readlines()
    return {(word, uuid) for word, _, uuid in (line.strip().partition(" ") for line in printed)}


def assert_sound(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def allocated_addresses(path: Path) -> dict[tuple[str, str], str]:
    """Owner of each allocated address, by network and address."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT network, address, owner FROM addresses WHERE held_until IS NULL")
        return {(network, address): owner for network, address, owner in rows}


def assert_complete(virtual_machine: VirtualMachine, allocated: dict[tuple[str, str], str]) -> None:
    """All its interfaces exist, each with its address in the store."""
    assert [interface.network_uuid for interface in virtual_machine.interfaces] == [
        network.uuid for network in POD_NETWORKS
    ]
    for interface in virtual_machine.interfaces:
        (address,) = interface.addresses
        assert allocated[interface.network_uuid, address.address] == interface.uuid


@pytest.mark.parametrize("seed", range(6))
async def test_at_a_random_moment(path: Path, seed: int) -> None:
    printed = write_until_killed(path, after_lines=random.Random(seed).randint(2, 1500))
    assert_sound(path)
    allocated = allocated_addresses(path)
    store = await SqliteStore.open(path)
    virtual_machines = {virtual_machine.uuid: virtual_machine for virtual_machine in await store.virtual_machines()}
    put, going, gone = ({uuid for word, uuid in printed if word == wanted} for wanted in ("put", "going", "gone"))
    assert put - going <= virtual_machines.keys()
    assert not gone & virtual_machines.keys()
    for virtual_machine in virtual_machines.values():
        assert_complete(virtual_machine, allocated)
    await assert_writable(store, list(virtual_machines.values()))
    await store.close()
    assert_sound(path)


async def assert_writable(store: SqliteStore, virtual_machines: list[VirtualMachine]) -> None:
    """New pods get addresses that no other pod has."""
    virtual_machines = virtual_machines + [await start_pod(store, POD_NETWORKS, f"later-{n}") for n in range(50)]
    uses = Counter(
        (interface.network_uuid, address.address)
        for virtual_machine in virtual_machines
        for interface in virtual_machine.interfaces
        for address in interface.addresses
    )
    assert set(uses.values()) == {1}


@pytest.mark.parametrize("after_lines", [1, 2])
async def test_during_the_creation_of_the_file_or_just_after(path: Path, after_lines: int) -> None:
    write_until_killed(path, after_lines=after_lines)
    store = await SqliteStore.open(path)
    for network in NETWORKS:
        await store.put_network(network)
    await assert_writable(store, await store.virtual_machines())
    await store.close()


async def test_repeatedly_on_one_file(path: Path) -> None:
    put: set[str] = set()
    going: set[str] = set()
    for seed in range(4):
        rename_existing_pods(path, f"round-{seed}")
        printed = write_until_killed(path, after_lines=random.Random(seed).randint(2, 400))
        put |= {uuid for word, uuid in printed if word == "put"}
        going |= {uuid for word, uuid in printed if word == "going"}
    assert_sound(path)
    store = await SqliteStore.open(path)
    assert put - going <= {virtual_machine.uuid for virtual_machine in await store.virtual_machines()}
    await store.close()


def rename_existing_pods(path: Path, prefix: str) -> None:
    """The writer uses the same pod names each time, so existing pods get other names."""
    if path.exists():
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE machines SET name = ? || name", (prefix,))
