"""How a pod reaches the server of its own cluster ("Accessing the Kubernetes API from a Pod")."""

import os
from collections.abc import Mapping

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.credentials import KeptCredentials
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeConfigurationError

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether this process runs in a pod."""
    return bool(environment.get(_HOST) and environment.get(_PORT))


def in_cluster_access(environment: Mapping[str, str]) -> ClientConfig:
    """Returns the access of a pod's service account. Raises KubeConfigurationError if this is no pod."""
    if not is_in_cluster(environment):
        raise KubeConfigurationError(f"not in a cluster: {_HOST} and {_PORT} are not set")
    host = environment[_HOST]
    token, authority = (os.path.join(SERVICE_ACCOUNT, name) for name in ("token", "ca.crt"))
    return ClientConfig(
        f"https://{f'[{host}]' if ':' in host else host}:{environment[_PORT]}",
        credentials=KeptCredentials(token=FileValue(token, "service account")),
        tls=RotatingTls(FileValue(authority, "service account")),
    )
