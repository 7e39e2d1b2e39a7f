"""Chooses where to look, as other controllers do: a file that was named, KUBECONFIG, the pod's own, ~/.kube/config."""

import asyncio
import os
from collections.abc import Mapping

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.files import read_files
from contrail_config.kube.configuration.in_cluster import in_cluster_access, is_in_cluster
from contrail_config.kube.configuration.kubeconfig import kubeconfig_access

_VARIABLE = "KUBECONFIG"
_AT_HOME = "~/.kube/config"


async def load_client_config(
    *, kubeconfig: str = "", context: str = "", environment: Mapping[str, str] = os.environ
) -> ClientConfig:
    """Returns how the server is reached. `kubeconfig` is a path, or several with colons between them.

    Raises KubeConfigurationError.
    """
    paths = kubeconfig or environment.get(_VARIABLE, "")
    if not paths and is_in_cluster(environment):
        return in_cluster_access(environment)
    return await asyncio.to_thread(_from_files, paths or _AT_HOME, context)


def _from_files(paths: str, context: str) -> ClientConfig:
    files = read_files([os.path.expanduser(path) for path in paths.split(os.pathsep) if path])
    return kubeconfig_access(files, context=context)
