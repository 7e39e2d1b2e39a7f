"""A power loss leaves the file as it was last flushed, and the log truncated anywhere."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.support.virtual_networks import make_network, start_pod

PODS = 40


@pytest.fixture
async def written(store: SqliteStore, path: Path) -> Path:
    """A store in use, whose log has many commits that are not in the file yet."""
    networks = [await store.put_network(make_network(name)) for name in ("left", "right")]
    for number in range(PODS):
        await start_pod(store, networks, f"p{number}")
    return path


def truncated_copy(path: Path, copy: Path, chance: random.Random) -> Path:
    """Copies the file and a prefix of its log."""
    shutil.copy(path, copy)
    log = Path(f"{path}-wal").read_bytes()
    Path(f"{copy}-wal").write_bytes(log[: chance.randint(0, len(log))])
    return copy


@pytest.mark.parametrize("seed", range(12))
async def test_a_log_truncated_anywhere_leaves_complete_virtual_machines(
    written: Path, tmp_path: Path, seed: int
) -> None:
    found = truncated_copy(written, tmp_path / "found.db", random.Random(seed))
    store = await SqliteStore.open(found)
    virtual_machines = await store.virtual_machines()
    owners = await store.address_owners()
    assert len(virtual_machines) <= PODS
    assert {
        interface.uuid for virtual_machine in virtual_machines for interface in virtual_machine.interfaces
    } <= owners
    await store.close()
    with closing(sqlite3.connect(found)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
