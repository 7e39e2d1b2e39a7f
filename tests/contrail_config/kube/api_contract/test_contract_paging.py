"""Lists: consistent pages, selected, and read to their end."""

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeFutureVersionError
from contrail_config.kube.paging import Page
from contrail_config.kube.selector import Selector
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps


def names(page: Page[ConfigMap]) -> list[str]:
    assert not any(isinstance(item, UndecodableObject) for item in page.items)
    return [item.metadata.name for item in page.items]


async def test_an_empty_list_has_a_version(client: KubeClient, namespace: str) -> None:
    selector = Selector(namespace, labels="nobody=has-it")
    pages = [page async for page in client.pages(CONFIG_MAPS, selector)]
    assert [names(page) for page in pages] == [[]]
    assert int(pages[0].resource_version) > 0


async def test_pages_are_in_order(client: KubeClient, config_maps: ConfigMaps) -> None:
    for name in "ecadb":
        await config_maps.create(f"list-{name}", labels={"of": "list"})
    selector = Selector(config_maps.namespace, labels="of=list")
    pages = [page async for page in client.pages(CONFIG_MAPS, selector, length=2)]
    assert [names(page) for page in pages] == [["list-a", "list-b"], ["list-c", "list-d"], ["list-e"]]
    assert len({page.resource_version for page in pages}) == 1


async def test_all_pages_are_of_one_snapshot(client: KubeClient, config_maps: ConfigMaps) -> None:
    for name in "abcd":
        await config_maps.create(f"list-{name}", labels={"of": "list"})
    selector = Selector(config_maps.namespace, labels="of=list")
    found: list[str] = []
    async for page in client.pages(CONFIG_MAPS, selector, length=2):
        found += names(page)
        if len(found) == 2:
            await config_maps.delete("list-d")
            await config_maps.create("list-e", labels={"of": "list"})
    assert found == ["list-a", "list-b", "list-c", "list-d"]


@pytest.mark.parametrize(
    ("labels", "fields", "expected"),
    [
        ("x=1", "", ["a"]),
        ("x!=1", "", ["b", "c"]),
        ("x in (1, 2)", "", ["a", "b"]),
        ("x notin (1, 2)", "", ["c"]),
        ("x", "", ["a", "b"]),
        ("!x", "", ["c"]),
        ("x=1,y=1", "", ["a"]),
        ("x=2,y=1", "", []),
        ("", "metadata.name=b", ["b"]),
        ("", "metadata.name!=b", ["a", "c"]),
        ("x=1", "metadata.name=b", []),
    ],
)
async def test_objects_are_selected(
    client: KubeClient, config_maps: ConfigMaps, labels: str, fields: str, expected: list[str]
) -> None:
    await config_maps.create("a", labels={"mine": "", "x": "1", "y": "1"})
    await config_maps.create("b", labels={"mine": "", "x": "2"})
    await config_maps.create("c", labels={"mine": ""})
    selector = Selector(config_maps.namespace, ",".join(filter(None, ["mine", labels])), fields)
    assert [found.metadata.name for found in await client.list_all(CONFIG_MAPS, selector)] == expected


async def test_objects_of_all_namespaces_are_listed(client: KubeClient, config_maps: ConfigMaps) -> None:
    await config_maps.create("a", labels={"of": config_maps.namespace})
    found = await client.list_all(CONFIG_MAPS, Selector(labels=f"of={config_maps.namespace}"))
    assert [(item.metadata.namespace, item.metadata.name) for item in found] == [(config_maps.namespace, "a")]


async def test_a_list_that_must_not_be_older_than_a_version_is_one_page(
    client: KubeClient, config_maps: ConfigMaps
) -> None:
    created = [await config_maps.create(f"list-{name}", labels={"of": "list"}) for name in "abc"]
    selector = Selector(config_maps.namespace, labels="of=list")
    version = created[-1].metadata.resource_version
    pages = [page async for page in client.pages(CONFIG_MAPS, selector, length=2, not_older_than=version)]
    assert [names(page) for page in pages] == [["list-a", "list-b", "list-c"]]
    assert int(pages[0].resource_version) >= int(version)


async def test_a_version_that_the_server_has_not_reached_is_reported(client: KubeClient) -> None:
    (page,) = [page async for page in client.pages(CONFIG_MAPS, Selector(labels="nobody=has-it"))]
    future = str(int(page.resource_version) + 1_000_000)
    with pytest.raises(KubeFutureVersionError, match="Too large resource version"):
        [page async for page in client.pages(CONFIG_MAPS, not_older_than=future)]
