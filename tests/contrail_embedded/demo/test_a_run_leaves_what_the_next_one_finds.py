"""All that a run makes bears its name, so that the next run of that name can take it away."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cni_contrail.runtime.sandbox import make_sandbox
from contrail_embedded.demo.errors import DemoError
from contrail_embedded.demo.node import identify, stop_kept_node
from contrail_embedded.demo.place import DemoDirectory


@pytest.fixture
def place() -> Iterator[DemoDirectory]:
    place = DemoDirectory(f"ct-demo-{uuid.uuid4().hex[:8]}")
    yield place
    place.remove()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def test_namespaces_of_other_runs_are_not_seen(place: DemoDirectory) -> None:
    other = DemoDirectory(f"{place.name}x")
    make_sandbox(place.node_namespace)
    make_sandbox(other.node_namespace)
    try:
        assert place.namespaces() == [place.node_namespace]
    finally:
        other.remove()


def test_removing_takes_namespaces_and_files(place: DemoDirectory) -> None:
    place.make()
    Path(place.plugin_settings).write_text("{}")
    for namespace in (place.node_namespace, place.pod_namespace("shop", "web")):
        make_sandbox(namespace)
    place.remove()
    assert place.namespaces() == []
    assert not os.path.exists(place.directory)
    place.remove()


def test_files_are_for_root_alone(place: DemoDirectory) -> None:
    place.make()
    assert os.stat(place.directory).st_mode & 0o777 == 0o700


def test_a_second_run_of_the_same_name_is_refused(place: DemoDirectory) -> None:
    with place.locked(), pytest.raises(DemoError, match=f"another run named {place.name} is going on"), place.locked():
        pass


class TestKeptNodes:
    def test_one_is_ended(self, place: DemoDirectory, sleeper: subprocess.Popen[bytes]) -> None:
        place.make()
        Path(place.process_file).write_bytes(msgspec.json.encode(identify(sleeper.pid)))
        stop_kept_node(place)
        assert sleeper.wait(5) == -signal.SIGTERM

    def test_a_process_that_has_its_number_now_is_left_alone(
        self, place: DemoDirectory, sleeper: subprocess.Popen[bytes]
    ) -> None:
        place.make()
        earlier = {**identify(sleeper.pid), "start": "1"}
        Path(place.process_file).write_bytes(msgspec.json.encode(earlier))
        stop_kept_node(place)
        assert sleeper.poll() is None

    def test_one_that_ended_by_itself_is_no_error(self, place: DemoDirectory) -> None:
        place.make()
        ended = subprocess.Popen(["true"])
        identity = identify(ended.pid)
        ended.wait()
        Path(place.process_file).write_bytes(msgspec.json.encode(identity))
        stop_kept_node(place)

    def test_none_at_all_is_no_error(self, place: DemoDirectory) -> None:
        stop_kept_node(place)
