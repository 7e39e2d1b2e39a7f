"""TLS: which servers the client trusts, and which certificate it presents; both may rotate."""

from pathlib import Path
from typing import Any

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientCertificate
from contrail_config.kube.configuration import value_source
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeUnavailableError
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig, ask_by
from tests.contrail_config.kube.tls import data, path, server_context, text
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver

INLINE = {"client-certificate-data": data("client.pem"), "client-key-data": data("client.key")}
IN_FILES = {"client-certificate": path("client.pem"), "client-key": path("client.key")}


@pytest.mark.parametrize(
    "authority",
    [
        {"certificate-authority-data": data("authority.pem")},
        {"certificate-authority": path("authority.pem")},
        {"certificate-authority-data": data("authority.pem"), "certificate-authority": "/nowhere"},
        {"certificate-authority-data": "", "certificate-authority": path("authority.pem")},
        {"insecure-skip-tls-verify": True},
        {"insecure-skip-tls-verify": True, "certificate-authority-data": ""},
    ],
)
async def test_a_server_of_the_authority_is_trusted(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, authority: dict[str, Any]
) -> None:
    await ask_by(write_kubeconfig(tls_server.url, cluster={"server": tls_server.url, **authority}))


@pytest.mark.parametrize("authority", [{"certificate-authority-data": data("other-authority.pem")}, {}])
async def test_a_server_of_another_authority_is_rejected(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, authority: dict[str, Any]
) -> None:
    file = write_kubeconfig(tls_server.url, cluster={"server": tls_server.url, **authority})
    with pytest.raises(KubeUnavailableError, match=r"127\.0\.0\.1:\d+: the server's certificate is not trusted: self-"):
        await ask_by(file)
    assert tls_server.callers == []


async def test_the_server_name_can_be_configured(write_kubeconfig: WriteKubeconfig) -> None:
    async with serve_fake_apiserver(tls=server_context("named-server")) as server:
        trust = {"server": server.url, "certificate-authority": path("authority.pem")}
        with pytest.raises(KubeUnavailableError, match=r"certificate is not trusted: (Hostname|IP address) mismatch"):
            await ask_by(write_kubeconfig(server.url, cluster=trust))
        await ask_by(write_kubeconfig(server.url, cluster={**trust, "tls-server-name": "kubernetes.test"}))
        assert server.callers == [""]


@pytest.mark.parametrize("user", [INLINE, IN_FILES])
async def test_the_client_presents_its_certificate(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, user: dict[str, str]
) -> None:
    await ask_by(write_kubeconfig(tls_server.url, user=user))
    assert tls_server.callers == ["client"]


async def test_a_rotated_client_certificate_is_presented_on_the_next_connection(
    tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_source, "REFRESH_INTERVAL", 0.0)
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    put_client(chain, key, "client")
    file = write_kubeconfig(tls_server.url, user={"client-certificate": str(chain), "client-key": str(key)})
    async with connect(await load_client_config(kubeconfig=file)) as client:
        await client.list_all(CONFIG_MAPS)
        put_client(chain, key, "next-client")
        await client.list_all(CONFIG_MAPS)
    assert tls_server.callers == ["client", "next-client"]


async def test_a_rotated_authority_is_trusted_at_once(write_kubeconfig: WriteKubeconfig, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text(text("authority.pem"))
    async with serve_fake_apiserver(tls=server_context("other-server")) as server:
        file = write_kubeconfig(server.url, cluster={"server": server.url, "certificate-authority": str(authority)})
        async with connect(await load_client_config(kubeconfig=file)) as client:
            with pytest.raises(KubeUnavailableError, match=f"verified with .*certificate-authority: {authority}"):
                await client.list_all(CONFIG_MAPS)
            authority.write_text(text("other-authority.pem"))
            await client.list_all(CONFIG_MAPS)


async def test_a_server_whose_certificate_has_expired_is_trusted_again_when_that_is_renewed(
    write_kubeconfig: WriteKubeconfig, tmp_path: Path
) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.write_text(text("expired-server.pem") + text("authority.pem"))
    certificate = server_context("expired-server")
    async with serve_fake_apiserver(tls=certificate) as server:
        trust = {"server": server.url, "certificate-authority": str(authorities)}
        file = write_kubeconfig(server.url, cluster=trust)
        async with connect(await load_client_config(kubeconfig=file)) as client:
            with pytest.raises(KubeUnavailableError, match="certificate is not trusted: certificate has expired"):
                await client.list_all(CONFIG_MAPS)
            certificate.load_cert_chain(path("server.pem"), path("server.key"))
            await client.list_all(CONFIG_MAPS)


async def test_a_context_is_built_once_for_the_same_certificates() -> None:
    tls = RotatingTls(FileValue(path("authority.pem"), "authority"))
    created = await tls.context(None)
    assert await tls.context(None) is created
    shown = ClientCertificate(text("client.pem").encode(), text("client.key").encode(), "user")
    assert await tls.context(shown) is not created


def put_client(chain: Path, key: Path, name: str) -> None:
    chain.write_text(text(f"{name}.pem"))
    key.write_text(text(f"{name}.key"))
