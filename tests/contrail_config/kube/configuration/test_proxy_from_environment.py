"""The proxy that the environment names, by the rules of client-go; cases of Go's `httpproxy` tests are among them."""

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import in_cluster_client_config, load_client_config
from contrail_config.kube.configuration.proxy import proxy_from_environment
from contrail_config.kube.errors import KubeConfigurationError
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer

SERVER = "https://example.com:6443"
PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("environment", "server", "proxy"),
    [
        ({}, SERVER, None),
        ({"HTTPS_PROXY": PROXY}, SERVER, PROXY),
        ({"https_proxy": PROXY}, SERVER, PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other:1"}, SERVER, PROXY),
        ({"HTTPS_PROXY": "", "https_proxy": PROXY}, SERVER, PROXY),
        ({"HTTPS_PROXY": "proxy:3128"}, SERVER, PROXY),
        ({"HTTPS_PROXY": "http://me:secret@proxy:3128"}, SERVER, "http://me:secret@proxy:3128"),
        ({"HTTPS_PROXY": "https://proxy"}, SERVER, "https://proxy"),
        ({"HTTP_PROXY": PROXY}, SERVER, None),
        ({"HTTP_PROXY": PROXY}, "http://example.com", PROXY),
        ({"HTTPS_PROXY": PROXY}, "http://example.com", None),
        ({"ALL_PROXY": PROXY}, SERVER, None),
        ({"HTTPS_PROXY": PROXY}, "https://localhost:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://127.0.0.2:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://[::1]:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://[fd00::1]:6443", PROXY),
    ],
)
def test_the_proxy_depends_on_scheme_and_host(environment: dict[str, str], server: str, proxy: str | None) -> None:
    assert proxy_from_environment(server, environment) == proxy


@pytest.mark.parametrize(
    ("exceptions", "server", "direct"),
    [
        ("example.com", SERVER, True),
        ("EXAMPLE.com", SERVER, True),
        (" other.com , example.com ", SERVER, True),
        ("example.com", "https://api.example.com", True),
        (".example.com", "https://api.example.com", True),
        ("*.example.com", "https://api.example.com", True),
        (".example.com", SERVER, False),
        ("*.example.com", SERVER, False),
        ("ample.com", SERVER, False),
        ("com", SERVER, True),
        ("example.com:6443", SERVER, True),
        ("example.com:443", SERVER, False),
        ("example.com:443", "https://example.com", True),
        ("*", SERVER, True),
        ("*", "https://10.0.0.1", True),
        ("10.0.0.1", "https://10.0.0.1:6443", True),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("10.0.0.1:80", "https://10.0.0.1:6443", False),
        ("10.0.0.0/8", "https://10.3.0.1:6443", True),
        ("10.0.0.7/8", "https://10.3.0.1:6443", True),
        ("10.0.0.0/8", "https://11.0.0.1:6443", False),
        ("10.0.0.0/8", "https://10.example.com", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]", "https://[fd00::1]:6443", True),
        ("0.0.1", "https://10.0.0.1:6443", False),
        ("10.0.0.0/99", "https://10.0.0.1:6443", False),
        (", ,", SERVER, False),
        (":6443", SERVER, False),
    ],
)
def test_hosts_of_no_proxy_are_reached_directly(exceptions: str, server: str, direct: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}
    assert proxy_from_environment(server, environment) == (None if direct else PROXY)


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "http://", "http://me:secret@proxy:x", "http://proxy:0"])
def test_an_unusable_proxy_is_an_error_that_hides_passwords(proxy: str) -> None:
    with pytest.raises(KubeConfigurationError, match=r"^HTTPS_PROXY: not the URL") as caught:
        proxy_from_environment(SERVER, {"HTTPS_PROXY": proxy})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_requests_go_through_the_proxy_of_the_environment(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig
) -> None:
    file = write_kubeconfig("http://kubernetes.invalid:6443")
    access = await load_client_config(kubeconfig=file, environment={"HTTP_PROXY": server.url})
    async with connect(access) as client:
        await client.list_all(CONFIG_MAPS)
    assert server.requests == ["list configmaps"]


async def test_the_proxy_of_the_kubeconfig_wins(write_kubeconfig: WriteKubeconfig) -> None:
    file = write_kubeconfig(SERVER, cluster={"server": SERVER, "proxy-url": "http://its-own:1"})
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}
    assert (await load_client_config(kubeconfig=file, environment=environment)).proxy == "http://its-own:1"


def test_a_pod_uses_the_proxy_unless_it_is_excepted() -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "HTTPS_PROXY": PROXY}
    assert in_cluster_client_config(pod).proxy == PROXY
    assert in_cluster_client_config({**pod, "NO_PROXY": "10.96.0.0/12"}).proxy is None
