"""Kubeconfig files: which are read, how they are merged, and which context is used."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig, ask_by, document
from tests.contrail_config.kube.tls import text
from tests.support.fake_apiserver.server import FakeApiServer


def write(path: Path, **sections: Any) -> str:
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **sections}))
    return str(path)


def cluster(name: str, server: str) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": server}}


def context(name: str, cluster: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster}}


async def load(*paths: str, context: str = "") -> ClientConfig:
    return await load_client_config(environment={"KUBECONFIG": ":".join(paths)}, context=context)


async def test_the_current_context_is_used(tmp_path: Path) -> None:
    clusters = [cluster("one", "http://one"), cluster("two", "http://two")]
    contexts = [context("a", "one"), context("b", "two")]
    file = write(tmp_path / "config", clusters=clusters, contexts=contexts, **{"current-context": "b"})
    assert (await load(file)).server == "http://two"
    assert (await load(file, context="a")).server == "http://one"


async def test_the_first_definition_of_a_name_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "first", clusters=[cluster("one", "http://first")], contexts=[context("a", "one")])
    second = write(
        tmp_path / "second",
        clusters=[cluster("one", "http://second"), cluster("two", "http://two")],
        contexts=[context("a", "two"), context("b", "two")],
        **{"current-context": "a"},
    )
    third = write(tmp_path / "third", **{"current-context": "b"})
    assert (await load(first, second, third)).server == "http://first"
    assert (await load(second, first, third)).server == "http://two"
    assert (await load(third, first, second)).server == "http://two"


async def test_missing_files_are_skipped(tmp_path: Path) -> None:
    file = write(
        tmp_path / "config",
        clusters=[cluster("one", "http://one")],
        contexts=[context("a", "one")],
        **{"current-context": "a"},
    )
    assert (await load(str(tmp_path / "nowhere"), "", file)).server == "http://one"


async def test_an_error_names_all_paths_if_no_file_exists(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigurationError, match=f"kubeconfig not found: {tmp_path}/a, {tmp_path}/b"):
        await load(f"{tmp_path}/a", f"{tmp_path}/b")


async def test_the_file_in_the_home_directory_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(document("http://home")))
    assert (await load_client_config(environment={})).server == "http://home"


async def test_relative_paths_are_relative_to_their_file(
    tls_server: FakeApiServer, tmp_path: Path, write_kubeconfig: WriteKubeconfig
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "ca.pem").write_text(text("authority.pem"))
    (tmp_path / "keys" / "token").write_text("relative")
    file = write_kubeconfig(
        tls_server.url,
        cluster={"certificate-authority": "keys/ca.pem"} | {"server": tls_server.url},
        user={"tokenFile": "keys/token"},
    )
    await ask_by(file)
    assert tls_server.callers == ["relative"]


async def test_keys_without_a_value_are_ignored(server: FakeApiServer, tmp_path: Path) -> None:
    written = document(server.url, user={"token": None, "exec": None})
    file = write(tmp_path / "config", **written | {"users": written["users"], "preferences": None, "extensions": None})
    await ask_by(file)
    assert server.callers == [""]


async def test_an_empty_file_defines_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(KubeConfigurationError, match="empty: current-context: not set"):
        await load(str(tmp_path / "empty"))
