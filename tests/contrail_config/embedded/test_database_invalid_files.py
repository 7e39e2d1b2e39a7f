"""A file that is not a valid store is rejected with an error that names it, and is not changed."""

import os
import random
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from contrail_config.embedded.schema import VERSION
from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreError, StoreUnavailableError
from tests.support.virtual_networks import make_network, start_pod


async def assert_rejected(path: Path, why: str) -> None:
    with pytest.raises(StoreUnavailableError, match=f"{re.escape(str(path))}.*{why}"):
        await SqliteStore.open(path)


async def fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    network = await store.put_network(make_network())
    for number in range(100):
        await start_pod(store, [network, network], f"p{number}")
    await store.close()


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Overwrites up to four ranges of at most 5000 bytes each."""
    overwritten = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        noise = chance.randbytes(chance.randint(1, 5000))
        start = chance.randrange(len(overwritten))
        overwritten[start : start + len(noise)] = noise
    return bytes(overwritten)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


async def test_a_new_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "below" / "config.db"
    store = await SqliteStore.open(path)
    await store.put_network(make_network())
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert modes == {"config.db": 0o600, "config.db-shm": 0o600, "config.db-wal": 0o600, "config.db.lock": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await store.close()
    assert {found.name for found in path.parent.iterdir()} == {"config.db", "config.db.lock"}


async def test_a_file_that_is_not_a_database(path: Path) -> None:
    write(path, b"store: {kind: embedded}\n" * 100)
    await assert_rejected(path, "not a database")
    assert content(path) == b"store: {kind: embedded}\n" * 100


async def test_a_database_of_another_application(path: Path) -> None:
    change(path, "CREATE TABLE recipes (title TEXT)")
    before = content(path)
    await assert_rejected(path, "another application")
    assert content(path) == before


async def test_a_newer_schema(path: Path) -> None:
    await fill(path)
    change(path, f"PRAGMA user_version = {VERSION + 1}")
    await assert_rejected(path, f"schema version {VERSION + 1} is newer than this release supports")


async def test_a_truncated_file(path: Path) -> None:
    await fill(path)
    whole = content(path)
    write(path, whole[: len(whole) // 2])
    await assert_rejected(path, "malformed|damaged")


@pytest.mark.parametrize("seed", range(20))
async def test_a_file_with_overwritten_parts_is_rejected_or_works(path: Path, seed: int) -> None:
    """Whatever is overwritten, only errors of the store are raised; damage to the structure of a page is detected."""
    await fill(path)
    write(path, damaged(content(path), random.Random(seed)))
    try:
        store = await SqliteStore.open(path)
    except StoreUnavailableError as error:
        assert str(path) in str(error)  # noqa: PT017 - rejected or not, both are correct
        return
    try:
        await store.put_network(make_network("later"))
        await store.virtual_machines()
    except StoreError as error:
        assert str(path) in str(error)  # noqa: PT017 - likewise
    finally:
        await store.close()


async def test_a_python_with_an_old_sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    await assert_rejected(path, "is too old, 3.35 or later is required")
    assert os.listdir(path.parent) == []


async def test_a_folder(tmp_path: Path) -> None:
    await assert_rejected(tmp_path, "Is a directory")


async def test_a_path_below_a_file(path: Path) -> None:
    write(path, b"")
    await assert_rejected(path / "config.db", "Not a directory|File exists")


async def test_an_empty_file_is_a_new_store(path: Path) -> None:
    write(path, b"")
    store = await SqliteStore.open(path)
    assert await store.virtual_machines() == []
    await store.close()


async def test_a_rejected_file_is_not_left_locked(path: Path) -> None:
    write(path, b"no database" * 100)
    await assert_rejected(path, "not a database")
    write(path, b"")
    await (await SqliteStore.open(path)).close()
