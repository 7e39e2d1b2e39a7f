"""Address blocks are stored without managed fields, which would have an entry for each of their many fields."""

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from tests.support.address_blocks import block_entries
from tests.support.real_apiserver.server import ApiServer
from tests.support.virtual_networks import make_network, start_pod


async def test_a_changed_block_has_no_managed_fields(api_server: ApiServer, client: KubeClient) -> None:
    await ensure_crds(client)
    store = KubernetesStore(client)
    network = await store.put_network(make_network())
    for name in ("first", "second"):
        await start_pod(store, [network], name)
    await store.close()
    (block,) = api_server.ask("GET", "/apis/opencontrail.org/v1alpha1/addressblocks")["items"]
    assert len(block_entries([block])) == 2
    assert "managedFields" not in block["metadata"]
