"""Selects the client configuration, as other controllers do.

In this order: the file that was named, KUBECONFIG, the pod's service account ("Accessing the Kubernetes API from a
Pod"), ~/.kube/config.
"""

import asyncio
import os
from collections.abc import Mapping

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.credentials import ConfiguredCredentials
from contrail_config.kube.configuration.files import read_files
from contrail_config.kube.configuration.kubeconfig import kubeconfig_client_config
from contrail_config.kube.configuration.proxy import proxy_from_environment
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeConfigurationError

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

_VARIABLE = "KUBECONFIG"
_AT_HOME = "~/.kube/config"
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


async def load_client_config(
    *, kubeconfig: str = "", context: str = "", environment: Mapping[str, str] = os.environ
) -> ClientConfig:
    """Returns the client configuration. `kubeconfig` is a path, or several separated by colons.

    Raises KubeConfigurationError.
    """
    paths = kubeconfig or environment.get(_VARIABLE, "")
    if not paths and _is_in_cluster(environment):
        return in_cluster_client_config(environment)
    return await asyncio.to_thread(_from_files, paths or _AT_HOME, context, environment)


def in_cluster_client_config(environment: Mapping[str, str]) -> ClientConfig:
    """Returns the configuration of the pod's service account. Raises KubeConfigurationError outside of a pod."""
    if not _is_in_cluster(environment):
        raise KubeConfigurationError(f"not in a cluster: {_HOST} and {_PORT} are not set")
    host = environment[_HOST]
    server = f"https://{f'[{host}]' if ':' in host else host}:{environment[_PORT]}"
    token, authority = (os.path.join(SERVICE_ACCOUNT, name) for name in ("token", "ca.crt"))
    return ClientConfig(
        server,
        credentials=ConfiguredCredentials(token=FileValue(token, "service account")),
        tls=RotatingTls(FileValue(authority, "service account")),
        proxy=proxy_from_environment(server, environment),
    )


def _is_in_cluster(environment: Mapping[str, str]) -> bool:
    return bool(environment.get(_HOST) and environment.get(_PORT))


def _from_files(paths: str, context: str, environment: Mapping[str, str]) -> ClientConfig:
    files = read_files([os.path.expanduser(path) for path in paths.split(os.pathsep) if path])
    return kubeconfig_client_config(files, context=context, environment=environment)
