"""Identity table: the uids that a source assigned to objects whose manifests have none."""

from pathlib import Path

from contrail_config.embedded.store import SqliteStore
from manager.source import IdentityLog


async def test_an_identity_survives_a_restart(store: SqliteStore, path: Path) -> None:
    await store.remember_identity("Pod", "default", "web", "uid-1")
    await store.remember_identity("Namespace", "", "default", "uid-2")
    await store.close()
    reopened = await SqliteStore.open(path)
    assert await reopened.identities() == {("Pod", "default", "web"): "uid-1", ("Namespace", "", "default"): "uid-2"}
    await reopened.close()


async def test_a_newer_uid_replaces_an_older_one(store: SqliteStore) -> None:
    log: IdentityLog = store
    await log.remember_identity("Pod", "default", "web", "uid-1")
    await log.remember_identity("Pod", "default", "web", "uid-2")
    assert await log.identities() == {("Pod", "default", "web"): "uid-2"}


async def test_forgetting_an_identity_is_idempotent(store: SqliteStore) -> None:
    await store.remember_identity("Pod", "default", "web", "uid-1")
    await store.remember_identity("Pod", "other", "web", "uid-2")
    for _ in range(2):
        await store.forget_identity("Pod", "default", "web")
    assert await store.identities() == {("Pod", "other", "web"): "uid-2"}
