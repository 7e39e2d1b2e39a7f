"""Client configuration from one context of the kubeconfig files."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from contrail_config.kube.client_config import Anonymous, ClientConfig, Credentials
from contrail_config.kube.configuration.credentials import ConfiguredCredentials
from contrail_config.kube.configuration.exec_plugin import ExecCredentials
from contrail_config.kube.configuration.files import Entry, MergedKubeconfig
from contrail_config.kube.configuration.proxy import proxy_from_environment
from contrail_config.kube.configuration.schema import Cluster, ExecConfig, User
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue, InlineValue, ValueSource
from contrail_config.kube.errors import KubeConfigurationError

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

S = TypeVar("S")


def kubeconfig_client_config(
    files: MergedKubeconfig, *, context: str = "", environment: Mapping[str, str]
) -> ClientConfig:
    """Returns the configuration of a context, by default the current one. Raises KubeConfigurationError.

    `environment` names the proxy of a cluster without `proxy-url`.
    """
    name = context or files.current_context
    if not name:
        raise KubeConfigurationError(f"{files.origin}: current-context: not set")
    selected = _find(files.contexts, name, f"{files.origin}: contexts")
    cluster = _find(files.clusters, selected.content.cluster, f"{selected.origin}: cluster")
    credentials: Credentials = Anonymous()
    if selected.content.user:
        credentials = _credentials(_find(files.users, selected.content.user, f"{selected.origin}: user"), cluster)
    return ClientConfig(
        _url(cluster, "server", cluster.content.server),
        credentials=credentials,
        tls=_tls(cluster),
        server_name=cluster.content.tls_server_name or None,
        proxy=_proxy(cluster, environment),
    )


def _proxy(cluster: Entry[Cluster], environment: Mapping[str, str]) -> str | None:
    if cluster.content.proxy_url:
        return _url(cluster, "proxy-url", cluster.content.proxy_url)
    return proxy_from_environment(cluster.content.server, environment)


def _find(entries: Mapping[str, Entry[S]], name: str, origin: str) -> Entry[S]:
    try:
        return entries[name]
    except KeyError:
        raise KubeConfigurationError(f"{origin}: {name!r} not found, only {', '.join(entries) or 'none'}") from None


def _url(cluster: Entry[Cluster], key: str, text: str) -> str:
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise KubeConfigurationError(f"{cluster.origin}: {key}: {text!r} is not an http or https URL")
    return text


def _tls(cluster: Entry[Cluster]) -> RotatingTls | None:
    content = cluster.content
    if content.server.startswith("http:"):
        return None
    authority = _authority(cluster)
    if authority and content.insecure_skip_tls_verify:
        raise KubeConfigurationError(
            f"{cluster.origin}: insecure-skip-tls-verify: cannot be combined with a certificate authority"
        )
    return RotatingTls(authority, verify=not content.insecure_skip_tls_verify)


def _authority(cluster: Entry[Cluster]) -> ValueSource | None:
    path, data = cluster.content.certificate_authority, cluster.content.certificate_authority_data
    # an empty value is most likely a failed substitution: it must not fall back to the system's authorities
    if data == "" and not path and not cluster.content.insecure_skip_tls_verify:
        raise KubeConfigurationError(f"{cluster.origin}: certificate-authority-data: empty")
    return _value_source(cluster, "certificate-authority", path=path, data=data or "")


def _credentials(user: Entry[User], cluster: Entry[Cluster]) -> Credentials:
    content = user.content
    _reject_unsupported(user)
    if content.exec and not (content.token or content.token_file):  # as in client-go, a token wins
        return _exec_credentials(user, content.exec, cluster)
    token: ValueSource | None = None
    if content.token_file:
        token = FileValue(user.path(content.token_file), f"{user.origin}: tokenFile")
    elif content.token:
        token = InlineValue(content.token.encode(), f"{user.origin}: token")
    return ConfiguredCredentials(token=token, certificate=_certificate(user))


def _reject_unsupported(user: Entry[User]) -> None:
    content = user.content
    given = {"username": content.username, "auth-provider": content.auth_provider, "as": content.as_}
    for key, value in given.items():
        if value:
            raise KubeConfigurationError(f"{user.origin}: {key}: not supported")


def _certificate(user: Entry[User]) -> tuple[ValueSource, ValueSource] | None:
    content = user.content
    chain = _value_source(
        user, "client-certificate", path=content.client_certificate, data=content.client_certificate_data
    )
    key = _value_source(user, "client-key", path=content.client_key, data=content.client_key_data)
    if chain and key:
        return chain, key
    if chain or key:
        missing = "client-key" if chain else "client-certificate"
        raise KubeConfigurationError(f"{user.origin}: {missing}: missing")
    return None


def _exec_credentials(user: Entry[User], plugin: ExecConfig, cluster: Entry[Cluster]) -> ExecCredentials:
    origin = f"{user.origin}: exec"
    if plugin.api_version not in _EXEC_VERSIONS:
        raise KubeConfigurationError(f"{origin}: apiVersion: {plugin.api_version!r} is not supported")
    if plugin.interactive_mode == "Always":
        raise KubeConfigurationError(f"{origin}: interactiveMode: there is no terminal")
    command = user.path(plugin.command) if "/" in plugin.command else plugin.command
    return ExecCredentials(
        plugin, command=command, origin=origin, cluster=_cluster_info(cluster.content), authority=_authority(cluster)
    )


def _cluster_info(content: Cluster) -> dict[str, Any]:
    """Returns `ExecCredential.spec.cluster`, without the certificate authority."""
    info = {
        "server": content.server,
        "tls-server-name": content.tls_server_name,
        "insecure-skip-tls-verify": content.insecure_skip_tls_verify,
        "proxy-url": content.proxy_url,
        "config": next((each.extension for each in content.extensions if each.name == _EXEC_EXTENSION), None),
    }
    return {key: value for key, value in info.items() if value}


def _value_source(entry: Entry[Any], key: str, *, path: str, data: str) -> ValueSource | None:
    """Returns the inline value, otherwise the file; None if neither is configured."""
    if data:
        try:
            return InlineValue(base64.b64decode(data, validate=True), f"{entry.origin}: {key}-data")
        except binascii.Error as error:
            raise KubeConfigurationError(f"{entry.origin}: {key}-data: not base64: {error}") from error
    return FileValue(entry.path(path), f"{entry.origin}: {key}") if path else None
