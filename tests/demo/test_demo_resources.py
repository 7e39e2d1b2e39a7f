"""All resources of a run carry its name, so that the next run of that name can remove them."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cni_contrail.runtime.sandbox import make_sandbox
from demo.errors import DemoError
from demo.node import identify, stop_kept_node
from demo.resources import DemoResources, run_name


@pytest.fixture
def resources() -> Iterator[DemoResources]:
    resources = DemoResources(f"ct-{uuid.uuid4().hex[:8]}-demo")
    yield resources
    resources.remove()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def test_namespaces_of_other_runs_are_not_listed(resources: DemoResources) -> None:
    other = DemoResources(f"{resources.name}x")
    make_sandbox(resources.node_namespace)
    make_sandbox(other.node_namespace)
    try:
        assert resources.namespaces() == [resources.node_namespace]
    finally:
        other.remove()


def test_removal_deletes_namespaces_and_files_and_is_idempotent(resources: DemoResources) -> None:
    resources.create()
    Path(resources.plugin_settings).write_text("{}")
    for namespace in (resources.node_namespace, resources.pod_namespace("shop", "web")):
        make_sandbox(namespace)
    resources.remove()
    assert resources.namespaces() == []
    assert not os.path.exists(resources.directory)
    resources.remove()


def test_the_directory_is_accessible_to_root_only(resources: DemoResources) -> None:
    resources.create()
    assert os.stat(resources.directory).st_mode & 0o777 == 0o700


def test_a_concurrent_run_of_the_same_name_is_rejected(resources: DemoResources) -> None:
    with (
        resources.locked(),
        pytest.raises(DemoError, match=f"run {resources.name}: already in progress"),
        resources.locked(),
    ):
        pass


@pytest.mark.parametrize(
    "name",
    ["", "-demo", "demo", "netns", "contrail", "contrail-7", "../a-demo", "a-demo/..", "a demo", "a-demox", "A-demo",
     "a-demo-b", "a-demo-b-demo", f"{'x' * 40}-demo", "a-demo\n"],
)  # fmt: skip
def test_a_name_under_which_others_have_files_or_namespaces_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters, digits and '-', and '-demo' once, at its end"):
        run_name(name)


@pytest.mark.parametrize("name", ["contrail-demo", "a-demo", "ct-5f-demo", "demo-2-demo"])
def test_a_name_of_a_demo_is_accepted(name: str) -> None:
    assert run_name(name) == name


def test_a_directory_that_no_run_made_is_left_alone(resources: DemoResources) -> None:
    Path(resources.directory).mkdir()
    foreign = Path(resources.directory, "data")
    foreign.mkdir()
    make_sandbox(resources.node_namespace)
    try:
        with pytest.raises(DemoError, match=f"{resources.directory}: is not of a demo"):
            resources.remove()
        assert foreign.is_dir()
        assert resources.namespaces() == [resources.node_namespace]
    finally:
        foreign.rmdir()


def test_a_directory_of_a_run_that_was_killed_before_its_first_file_is_removed(resources: DemoResources) -> None:
    Path(resources.directory).mkdir()
    resources.remove()
    assert not os.path.exists(resources.directory)


class TestKeptNode:
    def test_it_is_terminated(self, resources: DemoResources, sleeper: subprocess.Popen[bytes]) -> None:
        resources.create()
        Path(resources.process_file).write_bytes(msgspec.json.encode(identify(sleeper.pid)))
        stop_kept_node(resources)
        assert sleeper.wait(5) == -signal.SIGTERM

    def test_another_process_with_the_same_pid_is_left_alone(
        self, resources: DemoResources, sleeper: subprocess.Popen[bytes]
    ) -> None:
        resources.create()
        earlier = {**identify(sleeper.pid), "start": "1"}
        Path(resources.process_file).write_bytes(msgspec.json.encode(earlier))
        stop_kept_node(resources)
        assert sleeper.poll() is None

    def test_a_node_that_already_exited_is_no_error(self, resources: DemoResources) -> None:
        resources.create()
        exited = subprocess.Popen(["true"])
        identity = identify(exited.pid)
        exited.wait()
        Path(resources.process_file).write_bytes(msgspec.json.encode(identity))
        stop_kept_node(resources)

    def test_no_kept_node_is_no_error(self, resources: DemoResources) -> None:
        stop_kept_node(resources)
