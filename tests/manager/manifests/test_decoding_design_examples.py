"""The examples of the multi-network design document, verbatim: read from files, then parsed.

In two of them `spec.config` contains typographic quotes, a common mistake, so it is not JSON.
"""

import shutil
from pathlib import Path

import pytest

from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import NetworkDefinition
from manager.parsing.networks import parse_networks
from manager.source import Applied, Nad, Pod, SourceEvent
from tests.manager.manifests.conftest import Listen, summary

EXAMPLES = Path(__file__).parent / "data/multi-network-design"


async def events_of(name: str, folder: Path, listen: Listen) -> list[SourceEvent]:
    shutil.copy(EXAMPLES / name, folder)
    async with listen() as events:
        return await events.listed()


async def nad_of(name: str, folder: Path, listen: Listen) -> Nad:
    event, _ = await events_of(name, folder, listen)
    assert isinstance(event, Applied)
    assert isinstance(event.object, Nad)
    return event.object


def with_plain_quotes(nad: Nad) -> Nad:
    assert nad.config is not None
    config = nad.config.replace("“", '"').replace("”", '"')
    return Nad(nad.namespace, nad.name, nad.uid, nad.annotations, config)


async def test_the_pod_in_two_networks(folder: Path, listen: Listen) -> None:
    event, _ = await events_of("pod.yaml", folder, listen)
    assert isinstance(event, Applied)
    assert isinstance(event.object, Pod)
    assert (event.object.namespace, event.object.name) == ("default", "multiNetworkPod")
    selections = parse_networks(event.object.annotations["k8s.v1.cni.cncf.io/networks"], namespace="default")
    assert [selection.key for selection in selections] == ["default/network-a", "default/network-b"]


async def test_the_pod_in_a_network_of_another_namespace(folder: Path, listen: Listen) -> None:
    event, _ = await events_of("pod-with-other-namespace.yaml", folder, listen)
    assert isinstance(event, Applied)
    assert isinstance(event.object, Pod)
    selections = parse_networks(event.object.annotations["k8s.v1.cni.cncf.io/networks"], namespace="my-namespace")
    keys = [selection.key for selection in selections]
    assert keys == ["my-namespace/net-a", "my-namespace/net-b", "other-ns/net-c"]


@pytest.mark.parametrize("name", ["network-with-subnet.yaml", "network-by-reference.yaml"])
async def test_typographic_quotes_in_spec_config_are_reported(name: str, folder: Path, listen: Listen) -> None:
    nad = await nad_of(name, folder, listen)
    with pytest.raises(NadError, match=r"spec.config: .* “ \(U\+201C\) at line 1, column 3 is a typographic quote"):
        parse_nad(nad, default_mtu=1500)


async def test_the_network_with_a_subnet_and_plain_quotes(folder: Path, listen: Listen) -> None:
    nad = await nad_of("network-with-subnet.yaml", folder, listen)
    assert nad.annotations == {
        "opencontrail.org/cidr": '["10.1.1.0/24"]',
        "opencontrail.org/ip_fabric_snat": "false",
        "opencontrail.org/ip_fabric_forwarding": "true",
    }
    definition = parse_nad(with_plain_quotes(nad), default_mtu=1500)
    assert isinstance(definition, NetworkDefinition)
    assert [subnet.cidr for subnet in definition.subnets] == ["10.1.1.0/24"]
    assert definition.ip_fabric_forwarding
    assert not definition.ip_fabric_snat


async def test_the_network_by_reference_with_plain_quotes(folder: Path, listen: Listen) -> None:
    nad = await nad_of("network-by-reference.yaml", folder, listen)
    definition = parse_nad(with_plain_quotes(nad), default_mtu=1500)
    assert isinstance(definition, NetworkDefinition)
    assert definition.reference == ("default-domain", "k8s-extns", "k8s-extns-pod-network")


async def test_the_custom_resource_definition_is_ignored(folder: Path, listen: Listen) -> None:
    assert summary(await events_of("definition-kind.yaml", folder, listen)) == ["Listed"]
