"""Runs of the live check: which objects are left behind by one that was killed, and which may be in use."""

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from contrailctl.check.live.run import EXPIRES_KEY, PREFIX, PROCESS_KEY, Run, is_left_behind, new_run

NAME = f"{PREFIX}12345678-1"


@pytest.fixture
def run() -> Run:
    return new_run(60)


def test_objects_of_a_process_that_runs_are_in_use(run: Run) -> None:
    assert not is_left_behind(run.name, run.annotations, now=datetime.now(UTC))


def test_objects_whose_time_is_over_are_left_behind(run: Run) -> None:
    assert is_left_behind(run.name, run.annotations, now=datetime.now(UTC) + timedelta(seconds=62))


def test_objects_of_a_process_that_has_ended_are_left_behind(run: Run) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    process = run.process.replace(f"/{os.getpid()}:", f"/{ended.pid}:")
    assert process != run.process
    assert is_left_behind(NAME, {**run.annotations, PROCESS_KEY: process}, now=datetime.now(UTC))


def test_objects_of_a_process_whose_number_another_one_has_are_left_behind(run: Run) -> None:
    process = f"{run.process}0"  # started at another time
    assert is_left_behind(NAME, {**run.annotations, PROCESS_KEY: process}, now=datetime.now(UTC))


def test_processes_of_another_machine_may_run(run: Run) -> None:
    process = f"another-boot/4026531836/{os.getpid()}:1"
    assert not is_left_behind(NAME, {**run.annotations, PROCESS_KEY: process}, now=datetime.now(UTC))


@pytest.mark.parametrize("expires", ["", "soon", "2020-01-01T00:00:00"])
def test_objects_that_do_not_say_until_when_are_left_alone(expires: str) -> None:
    annotations = {EXPIRES_KEY: expires, PROCESS_KEY: "/:"}
    assert not is_left_behind(NAME, annotations, now=datetime.now(UTC))


def test_objects_of_others_are_left_alone_whatever_their_labels_are(run: Run) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    assert not is_left_behind("web-0", run.annotations, now=later)


def test_runs_have_different_names() -> None:
    assert len({new_run(60).name for _ in range(8)}) == 8
