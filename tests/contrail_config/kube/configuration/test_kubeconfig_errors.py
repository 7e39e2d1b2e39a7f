"""A kubeconfig that cannot be used is one message that names file and key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError, KubeError
from tests.contrail_config.kube.configuration.conftest import ask_by, document
from tests.contrail_config.kube.tls import data

SERVER = "https://127.0.0.1:1"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin"}


def with_user(**user: Any) -> Any:
    return document(SERVER, user={key.replace("_", "-"): value for key, value in user.items()})


def with_cluster(**cluster: Any) -> Any:
    written = {"server": SERVER} | {key.replace("_", "-"): value for key, value in cluster.items()}
    return document(SERVER, cluster=written)


def without(section: str) -> Any:
    return {key: value for key, value in document(SERVER).items() if key != section}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([], "Expected `object`, got `array`"),
        ({"clusters": {}}, "Expected `array`, got `object` - at `$.clusters`"),
        (with_user(token=12), "Expected `str`, got `int` - at `$.users[0].user.token`"),
        (without("contexts"), "contexts: 'here' not found, only none"),
        (without("clusters"), "contexts 'here': cluster: 'there' not found, only none"),
        (without("users"), "contexts 'here': user: 'me' not found, only none"),
        (without("current-context"), "current-context: not set"),
        (with_cluster(server=""), "clusters 'there': server: '' is not an http or https URL"),
        (
            with_cluster(server="127.0.0.1:6443"),
            "clusters 'there': server: '127.0.0.1:6443' is not an http",
        ),
        (with_cluster(server="https://[::1"), "clusters 'there': server: 'https://[::1' is not an http"),
        (
            with_cluster(proxy_url="socks5://p:1"),
            "clusters 'there': proxy-url: 'socks5://p:1' is not an http",
        ),
        (
            with_cluster(insecure_skip_tls_verify=True, certificate_authority="ca"),
            "clusters 'there': insecure-skip-tls-verify: cannot be combined",
        ),
        (with_cluster(certificate_authority_data="?"), "clusters 'there': certificate-authority-data: not base64"),
        (with_cluster(certificate_authority_data=""), "clusters 'there': certificate-authority-data: empty"),
        (with_user(client_key_data="?"), "users 'me': client-key-data: not base64"),
        (with_user(client_key="k"), "users 'me': client-certificate: missing"),
        (with_user(client_certificate="c"), "users 'me': client-key: missing"),
        (with_user(username="u", password="p"), "users 'me': username: not supported"),
        (with_user(**{"auth-provider": {"name": "gcp"}}), "users 'me': auth-provider: not supported"),
        (with_user(**{"as": "somebody"}), "users 'me': as: not supported"),
        (with_user(exec={**EXEC, "apiVersion": "v0"}), "users 'me': exec: apiVersion: 'v0' is not supported"),
        (
            with_user(exec={**EXEC, "interactiveMode": "Always"}),
            "users 'me': exec: interactiveMode: there is no terminal",
        ),
    ],
)
async def test_errors_that_are_found_when_the_file_is_loaded(tmp_path: Path, written: Any, problem: str) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(written))
    with pytest.raises(KubeConfigurationError) as raised:
        await load_client_config(kubeconfig=str(file))
    assert str(raised.value).startswith(f"{file}: {problem}")


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            with_cluster(certificate_authority="ca.pem"),
            "clusters 'there': certificate-authority: {folder}/ca.pem: No such",
        ),
        (
            with_cluster(certificate_authority="/dev/null"),
            "clusters 'there': certificate-authority: /dev/null: not a PEM certificate",
        ),
        (with_user(tokenFile="token"), "users 'me': tokenFile: {folder}/token: No such file"),
        (
            with_cluster(certificate_authority_data=data("client.key")),
            "clusters 'there': certificate-authority-data: not a PEM certificate",
        ),
        (
            with_user(client_certificate_data=data("client.pem"), client_key_data=data("next-client.key")),
            "users 'me': client-certificate-data: certificate and key do not match",
        ),
        (
            with_user(client_certificate_data=data("client.key"), client_key_data=data("client.key")),
            "users 'me': client-certificate-data: certificate and key do not match",
        ),
    ],
)
async def test_errors_that_are_found_when_the_configuration_is_used(tmp_path: Path, written: Any, problem: str) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(written))
    with pytest.raises(KubeConfigurationError) as raised:
        await ask_by(str(file))
    assert str(raised.value).startswith(f"{file}: {problem.format(folder=tmp_path)}")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: file.write_text("a: [b"), "not valid YAML: while parsing"),
        (lambda file: file.write_bytes(b"a: \xff"), "not UTF-8 text"),
        (
            lambda file: file.write_text("users:\n- name: a\n  user: {token: x,\n    token: y}"),
            "users[0].user.token: duplicate key, in line 3 and in line 4",
        ),
        (lambda file: file.mkdir(), "Is a directory"),
    ],
)
async def test_an_unreadable_file_is_named(tmp_path: Path, make: Callable[[Path], None], problem: str) -> None:
    file = tmp_path / "config"
    make(file)
    with pytest.raises(KubeConfigurationError) as raised:
        await load_client_config(kubeconfig=str(file))
    assert str(raised.value).startswith(f"{file}: {problem}")


async def test_an_unknown_context_is_named_with_the_existing_ones(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(document(SERVER)))
    with pytest.raises(KubeError, match="contexts: 'elsewhere' not found, only here"):
        await load_client_config(kubeconfig=str(file), context="elsewhere")
