"""Reader of the static pods of a cluster. Needs the verb list of pods.

Contrail's kube-manager knows a static pod by the uid of its mirror pod, which changes while the pod runs; the manager
derives its uuid from its manifest.
"""

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from manager.kubernetes.objects import identity
from manager.kubernetes.wire import PODS


class StaticPodReader:
    """Reads them when it is asked for: the list is long."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def __call__(self) -> set[str]:
        """Returns the uids of all mirror pods, as the API server has them. Raises StoreUnavailableError."""
        try:
            listed = await self._client.list_each(PODS)
        except KubeError as error:
            raise StoreUnavailableError(f"static pods cannot be listed: {error}") from error
        pods = (each for each in listed if not isinstance(each, UndecodableObject))
        return {pod.metadata.uid for pod in pods if identity(pod) != pod.metadata.uid}
