"""The uninstaller waits for the last pod, removes exactly what the installer put there, and nothing puts it back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cni_contrail.installer.report import Report
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.records import Record
from tests.cni_contrail.installer.conftest import ALL, CONFLIST, LOOPBACK, SETTINGS, InstallerNode, network_list

RECORD = Record("container-1", "eth0", "0" * 16, "/run/netns/pod", thick=True, vm_name="k8s__demo__web-0")
OTHERS = {
    "opt/cni/bin/bridge": "bridge",
    "opt/cni/bin/contrail-k8s-cni.bak": "backup",
    "etc/cni/net.d/20-other.conflist": "other",
    "etc/contrail/other.json": "{}",
}


@pytest.fixture
def attachments(installer_node: InstallerNode) -> Attachments:
    return Attachments(installer_node.paths.state_dir, installer_node.log)


def stops_after(*steps: Callable[[], object]) -> Callable[[float], bool]:
    """Waits by taking the next step each time, and stops a look after the last one: the last but one takes the list."""
    left: list[Callable[[], object]] = [*steps, lambda: None]

    def is_stopped_within(_seconds: float) -> bool:
        if not left:
            return True
        left.pop(0)()
        return False

    return is_stopped_within


def test_only_files_of_the_installer_are_removed(installer_node: InstallerNode) -> None:
    for name, content in OTHERS.items():
        installer_node.path(name).write_text(content)
    installer_node.look()
    assert set(installer_node.files()) == {*ALL, *OTHERS}
    installer_node.uninstaller().run(stops_after())
    assert installer_node.reported() == Report("uninstall", done=True)
    assert {name: installer_node.path(name).read_text() for name in installer_node.files()} == OTHERS


def test_a_loopback_of_the_node_is_not_removed(installer_node: InstallerNode) -> None:
    installer_node.path(LOOPBACK).write_text("theirs")
    installer_node.look()
    installer_node.uninstaller().run(stops_after())
    assert installer_node.files() == [LOOPBACK]


def test_all_stays_until_the_last_pod_is_gone(installer_node: InstallerNode, attachments: Attachments) -> None:
    installer_node.look()
    attachments.write(RECORD)
    attachments.write(RECORD._replace(container_id="container-2", vm_name="k8s__demo__web-1"))
    seen: list[Report] = []

    def remove(container: str) -> None:
        seen.append(installer_node.reported())
        assert installer_node.files() == ALL
        attachments.remove(RECORD._replace(container_id=container))

    steps = (lambda: remove("container-2"), lambda: remove("container-1"), lambda: None)
    installer_node.uninstaller().run(stops_after(*steps))
    assert [report.waiting for report in seen] == [
        "pods with interfaces: k8s__demo__web-0, k8s__demo__web-1",
        "pods with interfaces: k8s__demo__web-0",
    ]
    assert installer_node.files() == []


def test_a_pod_that_starts_just_then_keeps_all_in_place(
    installer_node: InstallerNode, attachments: Attachments
) -> None:
    installer_node.look()
    seen: list[tuple[str, list[str]]] = []

    def look() -> None:
        seen.append((installer_node.reported().waiting, installer_node.files()))

    def start() -> None:
        look()
        attachments.write(RECORD)

    def end() -> None:
        look()
        attachments.remove(RECORD)

    installer_node.uninstaller().run(stops_after(start, end, look))
    withdrawn = sorted([*(name for name in ALL if name != CONFLIST), f"{CONFLIST}.withdrawn"])
    about_to_start = ("pods that were about to start", withdrawn)
    assert seen == [about_to_start, ("pods with interfaces: k8s__demo__web-0", ALL), about_to_start]
    assert installer_node.files() == []


def test_an_installer_puts_back_what_a_killed_uninstaller_withdrew(installer_node: InstallerNode) -> None:
    installer_node.look()
    assert installer_node.installation().withdraw_list()
    installer_node.set_ready(is_ready=False)
    installer_node.look()
    assert installer_node.files() == ALL


def test_an_uninstaller_goes_on_after_a_killed_one(installer_node: InstallerNode, attachments: Attachments) -> None:
    installer_node.look()
    assert installer_node.installation().withdraw_list()
    attachments.write(RECORD)
    installer_node.uninstaller().run(lambda _seconds: True)
    assert installer_node.files() == ALL
    assert installer_node.installation().withdraw_list()
    attachments.remove(RECORD)
    installer_node.uninstaller().run(lambda _seconds: True)
    assert installer_node.files() == []


def test_a_pod_whose_record_is_damaged_counts(installer_node: InstallerNode, attachments: Attachments) -> None:
    installer_node.look()
    attachments.write(RECORD)
    Path(installer_node.paths.state_dir, "container-1", "eth0.json").write_text("{")
    installer_node.uninstaller().run(stops_after())
    assert installer_node.reported().waiting == "pods with interfaces: container-1"
    assert installer_node.files() == ALL


def test_nothing_is_put_back_while_it_runs(installer_node: InstallerNode) -> None:
    keeper = installer_node.keeper()
    keeper.look()
    installer_node.uninstaller().run(stops_after(keeper.look, keeper.look))
    assert installer_node.files() == []
    assert installer_node.reported() == Report("uninstall", done=True)
    keeper.look()  # an uninstallation that was given up
    assert installer_node.files() == ALL
    assert installer_node.reported() == Report("install", done=True)


def test_it_waits_for_the_installer(installer_node: InstallerNode) -> None:
    first, second = installer_node.uninstaller(), installer_node.uninstaller()
    installer_node.look()
    first.run(stops_after(lambda: second.run(stops_after())))
    assert installer_node.reported() == Report("uninstall", done=True)


def test_a_file_that_cannot_be_removed_is_tried_again(installer_node: InstallerNode) -> None:
    installer_node.look()
    settings = installer_node.path(SETTINGS)
    settings.unlink()
    settings.mkdir()
    errors: list[str] = []

    def repair() -> None:
        errors.extend(installer_node.reported().errors)
        settings.rmdir()

    installer_node.uninstaller().run(stops_after(lambda: None, repair))
    assert errors == [f"/{SETTINGS}: cannot remove: Is a directory"]
    assert installer_node.reported().done
    assert not installer_node.path(CONFLIST).exists()


def test_a_list_that_another_plugin_put_there_later_is_not_touched(installer_node: InstallerNode) -> None:
    installer_node.look()
    theirs = installer_node.path("etc/cni/net.d/10-other.conflist")
    theirs.write_text(network_list("bridge"))
    installer_node.uninstaller().run(stops_after())
    assert installer_node.files() == ["etc/cni/net.d/10-other.conflist"]
