"""Service processes: run until a signal, clean up, and exit with a status that says how they ended."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, sys
from contrail_service import process
from contrail_service.errors import ConfigurationError
{settings}
async def service():
{body}
sys.exit(process.run_service(service, program="prog"))
"""


def _start(body: str, settings: str = "") -> subprocess.Popen[str]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=lines, settings=settings)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_service_after_its_clean_up(number: signal.Signals) -> None:
    body = (
        "try:\n    print('up', flush=True)\n    await asyncio.Event().wait()\n"
        "finally:\n    await asyncio.sleep(0)\n    print('cleaned')"
    )
    with _start(body) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=10)
        assert (process.returncode, out) == (0, "cleaned\n")


def test_a_service_that_does_not_stop_in_time_is_abandoned_with_status_0() -> None:
    body = "print('up', flush=True)\ntry:\n    await asyncio.Event().wait()\nfinally:\n    await asyncio.Event().wait()"
    with _start(body, settings="process.STOP_GRACE = 0.2") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        _, err = process.communicate(timeout=10)
        assert process.returncode == 0
        assert err == "shutdown: timed out after 0.2 s, exiting without the rest of the clean-up\n"


def test_an_invalid_configuration_is_one_line_and_status_2() -> None:
    with _start("raise ConfigurationError('listen: bad')") as process:
        _, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (2, "prog: listen: bad\n")


def test_an_invalid_configuration_found_by_a_task_is_reported_alike() -> None:
    body = (
        "async def part():\n    raise ConfigurationError('pod-network: bad')\n"
        "async with asyncio.TaskGroup() as tasks:\n    tasks.create_task(part())"
    )
    with _start(body) as process:
        _, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (2, "prog: pod-network: bad\n")


def test_the_file_limit_is_raised_to_the_hard_limit() -> None:
    body = "import resource\nlow, high = resource.getrlimit(resource.RLIMIT_NOFILE)\nprint(low == high)"
    with _start(body, settings="import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))") as process:
        out, _ = process.communicate(timeout=10)
        assert (process.returncode, out) == (0, "True\n")


def test_a_service_that_crashes_exits_with_status_1_and_logs_its_trace() -> None:
    with _start("raise RuntimeError('broken')") as process:
        _, err = process.communicate(timeout=10)
        assert process.returncode == 1
        assert "RuntimeError: broken" in err
