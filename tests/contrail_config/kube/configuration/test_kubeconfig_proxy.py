"""A proxy between client and server, and a server below a path."""

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer


async def test_requests_go_through_the_proxy(server: FakeApiServer, write_kubeconfig: WriteKubeconfig) -> None:
    nowhere = "http://kubernetes.invalid:6443"
    file = write_kubeconfig(nowhere, cluster={"server": nowhere, "proxy-url": server.url})
    async with connect(await load_client_config(kubeconfig=file)) as client:
        await client.list_all(CONFIG_MAPS)
    assert server.requests == ["list configmaps"]


async def test_requests_to_a_server_below_a_path_have_its_prefix(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig
) -> None:
    server.below = "/k8s/clusters/c1"
    async with connect(await load_client_config(kubeconfig=write_kubeconfig(f"{server.url}{server.below}/"))) as client:
        await client.list_all(CONFIG_MAPS)
    assert server.requests == ["list configmaps"]
