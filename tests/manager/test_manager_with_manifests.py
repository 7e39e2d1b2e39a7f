"""The manager with a folder of manifests as its source, as on the embedded node."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manager.manifests.source import ManifestSource
from tests.manager.conftest import Start
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import running_manager
from tests.support.stores_with_events import StoreWithEvents

NETWORK = """
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: {name}
  namespace: blue
  annotations: {{opencontrail.org/cidr: {cidr}}}
spec: {{config: '{{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}}'}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: blue
  annotations: {{k8s.v1.cni.cncf.io/networks: "{networks}"}}
spec: {{containers: [{{name: c, image: busybox}}]}}
"""

Write = Callable[[str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    return folder


@pytest.fixture
def source(folder: Path, store: StoreWithEvents) -> ManifestSource:
    return ManifestSource(str(folder), node="node-1", identities=store, quiet_period=0.02)


@pytest.fixture
def write(folder: Path) -> Write:
    def write_file(name: str, text: str) -> None:
        (folder / name).write_text(text)

    return write_file


async def test_pods_are_assigned_wait_and_are_released(
    start: Start, source: ManifestSource, write: Write, folder: Path
) -> None:
    write("net-a.yaml", NETWORK.format(name="net-a", cidr="10.1.0.0/16"))
    write("web.yaml", POD.format(name="web", networks="net-a,net-b") + "---" + POD.format(name="plain", networks=""))
    running = await start(source=source)
    await running.wait_for(lambda vm: vm.pod == "plain")
    write("net-b.yaml", NETWORK.format(name="net-b", cidr="10.2.0.0/16"))
    vm = await running.wait_for(lambda vm: vm.pod == "web")
    assert [interface.nad for interface in vm.interfaces] == [None, "blue/net-a", "blue/net-b"]
    assert vm.node == "node-1"
    (folder / "web.yaml").unlink()
    await running.wait_until_deleted("web")
    events = await running.store.events(kind="Pod", name="web")
    assert [event.reason for event in events] == ["NetworkNotFound", "InterfacesAssigned"]


async def test_a_restart_finds_the_same_pods(
    store: StoreWithEvents, source: ManifestSource, write: Write, start: Start
) -> None:
    write(
        "all.yaml", NETWORK.format(name="net-a", cidr="10.1.0.0/16") + "---" + POD.format(name="web", networks="net-a")
    )
    async with running_manager(store, source=source) as before:
        written = await before.wait_for(lambda vm: vm.pod == "web")
    running = await start(source=source)
    write("more.yaml", POD.format(name="more", networks="net-a"))
    await running.wait_for(lambda vm: vm.pod == "more")
    assert await store.virtual_machine(written.uuid) == written
    await eventually(lambda: running.manager.readiness() == [])


async def test_an_invalid_manifest_is_reported_and_the_others_are_read(
    start: Start, source: ManifestSource, write: Write
) -> None:
    write("broken.yaml", "kind: Pod\nmetadata: [")
    write("web.yaml", POD.format(name="web", networks=""))
    running = await start(source=source)
    await running.wait_for(lambda vm: vm.pod == "web")
    await running.idle()
    (event,) = await running.store.events(kind="Manifest")
    assert event.name == "broken.yaml"
