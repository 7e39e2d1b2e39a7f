"""In a pod: server from the environment, token and CA from the service account's files."""

from pathlib import Path

import pytest

from contrail_config.kube.configuration import load
from contrail_config.kube.configuration.load import in_cluster_client_config, load_client_config
from contrail_config.kube.errors import KubeConfigurationError
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig, ask
from tests.contrail_config.kube.tls import text
from tests.support.fake_apiserver.server import FakeApiServer


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(load, "SERVICE_ACCOUNT", str(tmp_path))
    (tmp_path / "ca.crt").write_text(text("authority.pem"))
    (tmp_path / "token").write_text("first\n")
    return tmp_path


def environment(server: FakeApiServer) -> dict[str, str]:
    return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}


@pytest.mark.usefixtures("service_account")
async def test_requests_carry_the_service_accounts_token(tls_server: FakeApiServer) -> None:
    await ask(in_cluster_client_config(environment(tls_server)))
    assert tls_server.callers == ["first"]


@pytest.mark.usefixtures("service_account")
async def test_a_pod_needs_no_configuration(tls_server: FakeApiServer) -> None:
    await ask(await load_client_config(environment=environment(tls_server)))
    assert tls_server.callers == ["first"]


async def test_a_named_kubeconfig_wins(
    server: FakeApiServer, tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig
) -> None:
    file = write_kubeconfig(server.url)
    for named in ({"kubeconfig": file}, {"environment": {"KUBECONFIG": file}}):
        access = await load_client_config(**{"environment": environment(tls_server), **named})  # type: ignore[arg-type]  # one of two
        assert access.server == server.url


async def test_an_ipv6_address_is_put_in_brackets() -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster_client_config(pod).server == "https://[fd00::1]:443"


async def test_the_error_outside_of_a_pod_names_the_missing_variables() -> None:
    with pytest.raises(KubeConfigurationError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster_client_config({"KUBERNETES_SERVICE_PORT": "443"})


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
async def test_a_missing_file_is_named(tls_server: FakeApiServer, service_account: Path, missing: str) -> None:
    (service_account / missing).unlink()
    with pytest.raises(KubeConfigurationError, match=rf"service account: .*/{missing}: No such file"):
        await ask(in_cluster_client_config(environment(tls_server)))
