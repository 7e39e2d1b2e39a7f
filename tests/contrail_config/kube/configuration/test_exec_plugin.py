"""Exec plugins: their input, their credentials, how long these are cached, and how plugins fail."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.configuration import exec_plugin
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError, KubeUnauthorizedError
from tests.contrail_config.kube.configuration.commands import (
    V1,
    V1BETA1,
    WriteCommand,
    all_ended,
    count_runs,
    counting,
    giving,
    hanging,
    user,
)
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig, ask_by
from tests.contrail_config.kube.tls import data, path, text
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually


async def test_the_token_is_sent(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand
) -> None:
    await ask_by(write_kubeconfig(server.url, user=user(write_command(giving(token="given")))))
    assert server.callers == ["given"]


async def test_v1beta1_is_supported(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand
) -> None:
    command = write_command(giving(V1BETA1, token="given"))
    await ask_by(write_kubeconfig(server.url, user=user(command, apiVersion=V1BETA1)))
    assert server.callers == ["given"]


async def test_a_client_certificate_is_presented(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand
) -> None:
    given = giving(clientCertificateData=text("client.pem"), clientKeyData=text("client.key"))
    await ask_by(write_kubeconfig(tls_server.url, user=user(write_command(given))))
    assert tls_server.callers == ["client"]


async def test_a_command_without_a_slash_is_looked_up_in_path(
    server: FakeApiServer,
    write_kubeconfig: WriteKubeconfig,
    write_command: WriteCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = write_command(giving(token="given"), "our-plugin")
    monkeypatch.setenv("PATH", os.path.dirname(command), prepend=":")
    await ask_by(write_kubeconfig(server.url, user=user("our-plugin")))
    assert server.callers == ["given"]


async def test_a_relative_command_is_relative_to_its_file(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand
) -> None:
    write_command(giving(token="given"))
    await ask_by(write_kubeconfig(server.url, user=user("./plugin")))
    assert server.callers == ["given"]


async def test_it_gets_arguments_environment_and_exec_info(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, tmp_path: Path
) -> None:
    command = write_command(
        f"""
import json, os, sys
with open({str(tmp_path / "exec-info")!r}, "w") as file:
    json.dump([sys.argv[1:], os.environ["OURS"], json.loads(os.environ["KUBERNETES_EXEC_INFO"])], file)
{giving(token="given")}
"""
    )
    plugin = user(command, args=["a", "b c"], env=[{"name": "OURS", "value": "value"}], provideClusterInfo=True)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"server": tls_server.url, "certificate-authority-data": data("authority.pem"), "extensions": [extension]}
    await ask_by(write_kubeconfig(tls_server.url, cluster=cluster, user=plugin))
    about = {
        "server": tls_server.url,
        "certificate-authority-data": data("authority.pem"),
        "config": {"audience": "x"},
    }
    spec = {"interactive": False, "cluster": about}
    assert json.loads((tmp_path / "exec-info").read_bytes()) == [
        ["a", "b c"],
        "value",
        {"apiVersion": V1, "kind": "ExecCredential", "spec": spec},
    ]


async def test_a_ca_file_is_passed_by_its_contents(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, tmp_path: Path
) -> None:
    command = write_command(
        f"""
import os
with open({str(tmp_path / "exec-info")!r}, "w") as file:
    file.write(os.environ["KUBERNETES_EXEC_INFO"])
{giving(token="given")}
"""
    )
    cluster = {"server": tls_server.url, "certificate-authority": path("authority.pem")}
    await ask_by(write_kubeconfig(tls_server.url, cluster=cluster, user=user(command, provideClusterInfo=True)))
    info = json.loads((tmp_path / "exec-info").read_bytes())
    assert info["spec"]["cluster"]["certificate-authority-data"] == data("authority.pem")


@pytest.mark.parametrize(("left", "count"), [(3600, 1), (-1, 3), (None, 1)])
async def test_credentials_are_cached_until_they_expire(
    server: FakeApiServer,
    write_kubeconfig: WriteKubeconfig,
    write_command: WriteCommand,
    runs: Path,
    left: int | None,
    count: int,
) -> None:
    expires = None if left is None else datetime.now(UTC) + timedelta(seconds=left)
    file = write_kubeconfig(server.url, user=user(write_command(counting(runs, expires=expires))))
    async with connect(await load_client_config(kubeconfig=file)) as client:
        for _ in range(3):
            await client.list_all(CONFIG_MAPS)
    assert server.callers[-1] == f"t{count}"
    assert len(set(server.callers)) == count


async def test_it_runs_again_when_the_server_rejects_its_credentials(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, runs: Path
) -> None:
    server.faults.tokens = {"t2"}
    file = write_kubeconfig(server.url, user=user(write_command(counting(runs))))
    async with connect(await load_client_config(kubeconfig=file)) as client:
        await client.list_all(CONFIG_MAPS)
        server.faults.tokens = {"t3"}
        await asyncio.gather(*(client.list_all(CONFIG_MAPS) for _ in range(5)))
    assert count_runs(runs) == 3


async def test_credentials_that_stay_rejected_cause_no_loop(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, runs: Path
) -> None:
    server.faults.tokens = set()
    with pytest.raises(KubeUnauthorizedError):
        await ask_by(write_kubeconfig(server.url, user=user(write_command(counting(runs)))))
    assert server.callers == ["t1", "t2"]


async def test_concurrent_requests_share_a_run(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, runs: Path
) -> None:
    file = write_kubeconfig(server.url, user=user(write_command(counting(runs))))
    async with connect(await load_client_config(kubeconfig=file)) as client:
        await asyncio.gather(*(client.list_all(CONFIG_MAPS) for _ in range(5)))
    assert server.callers == ["t1"] * 5


async def test_a_hanging_command_is_killed_with_its_child_processes(
    server: FakeApiServer,
    write_kubeconfig: WriteKubeconfig,
    write_command: WriteCommand,
    monkeypatch: pytest.MonkeyPatch,
    pids: Path,
) -> None:
    monkeypatch.setattr(exec_plugin, "DEADLINE", 0.5)
    command = write_command(hanging(pids))
    with pytest.raises(KubeConfigurationError, match=rf"exec: command {command}: timed out after 0.5 s"):
        await ask_by(write_kubeconfig(server.url, user=user(command)))
    await eventually(all_ended, pids)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit('log in first')", "failed with status 1: log in first"),
        ("print('no json')", "printed no ExecCredential: JSON is malformed"),
        ('import os; os.write(1, b\'{"kind": "\\xff"}\')', "printed no ExecCredential: 'utf-8' codec"),
        (giving(V1BETA1, token="t"), "printed client.authentication.k8s.io/v1beta1 ExecCredential, not"),
        (giving(), "printed neither a token nor a certificate with its key"),
        (giving(clientCertificateData="x"), "printed neither a token nor a certificate with its key"),
        (
            giving(clientCertificateData=text("client.pem"), clientKeyData=text("next-client.key")),
            "certificate and key do not match",
        ),
        (giving(token=1), r"printed no ExecCredential: Expected `str`, got `int` - at `\$.status.token`"),
        (
            giving(token="t", expirationTimestamp="2030-01-01T00:00:00"),
            r"printed no ExecCredential: Expected `datetime` with a timezone .* - at `\$.status.expirationTimestamp`",
        ),
        (giving(token="two words"), "not a token"),
    ],
)
async def test_its_failures_are_named(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand, code: str, problem: str
) -> None:
    with pytest.raises(KubeConfigurationError, match=problem) as raised:
        await ask_by(write_kubeconfig(server.url, user=user(write_command(code))))
    assert "/config: users 'me': exec" in str(raised.value)


async def test_a_missing_command_is_named_with_its_install_hint(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig
) -> None:
    plugin = user("/nowhere/plugin", installHint="get it there")
    with pytest.raises(KubeConfigurationError, match="cannot be started: No such file or directory; get it there"):
        await ask_by(write_kubeconfig(server.url, user=plugin))
