"""The system time may be set at any moment, so all programs of nodes and managers go by the monotonic clock.

Each use of the system time is listed here, with the worst that a jump of it does. Those of `contrailctl` are not:
it shows times to people, and does not run for long.
"""

import ast
import os
import re
import time
from pathlib import Path

import pytest

from cni_contrail.agent import postponement
from cni_contrail.agent.postponement import is_due, postpone
from cni_contrail.state.files import create_atomically, remove_old_partial_files
from tests.support.system_clock import SystemClock

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent_api", "cni_contrail", "contrail_config", "contrail_embedded", "contrail_service", "manager")
OF_TIME = {"monotonic", "perf_counter", "sleep", "thread_time"}
"""Functions of the module `time` that do not depend on the system time."""

OF_DATETIME = {"now", "utcnow", "today", "fromtimestamp"}
"""Methods of `datetime` and `date` that read the system time, or show it to people."""

USES = {
    "agent_api/datapath/linux_datapath.py": "a value for people",
    "agent_api/datapath/reports.py": "a value for people",
    "agent_api/node/reporter.py": "a value for people, and contrailctl says for a while that the agent is silent",
    "agent_api/ports/container.py": "a value for people, as the Contrail vrouter agent writes it",
    "agent_api/ports/directory.py": "of two files that a killed move left, the older one counts until the next POST",
    "agent_api/ports/instance.py": "a value for people, as the Contrail vrouter agent writes it",
    "agent_api/responses.py": "a value for people, as the Contrail vrouter agent serves it",
    "cni_contrail/agent/postponement.py": "a pause ends early, or lasts for the longest one once more",
    "cni_contrail/commands/attach_steps.py": "a value for people, as Contrail's own plugin writes it",
    "cni_contrail/daemon/recent_adds.py": "a value for people",
    "cni_contrail/log.py": "a value for people",
    "cni_contrail/node_file.py": "a file is read at each call until the clock passes its last change; none is missed",
    "cni_contrail/state/files.py": "a file that is being created may be removed, and is created again",
    "contrail_config/kube/configuration/exec_plugin.py": "the command runs for each request, or once a credential is"
    " rejected",
    "contrail_config/kube/leader_election.py": "a value for people: other candidates wait by their monotonic clocks",
    "contrail_config/kubernetes/expected_slices.py": "none: holds count from this very time",
    "contrail_config/kubernetes/port_requests.py": "none: a request differs from the one before",
    "contrail_config/pod_timeline.py": "a value for people",
    "contrail_config/steady_clock.py": "none in a process; after a restart, a hold ends early or is the longest one",
    "contrail_config/vnc/keystone.py": "only if keystone does not say when it issued a token: renewal is early or late",
    "contrail_config/vnc/server_clock.py": "none, except with a server that sends no time: as of `steady_clock`",
    "contrail_service/logs.py": "a value for people",
    "manager/events.py": "an event has a wrong time; an embedded store may remove it early, or keep it for longer",
    "manager/kubernetes/event_log.py": "a value for people",
    "manager/kubernetes/pod_trace.py": "a value for people",
    "manager/manifests/folder_scan.py": "none: times are compared for equality, with inode and size",
}
HOUR = 3600.0


def uses_system_time(path: Path) -> bool:
    """Whether a module has functions of the system time, or times of files, which are system time, too."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imports = [each for node in nodes if isinstance(node, ast.Import) for each in node.names if each.name == "time"]
    if any(each.asname for each in imports):  # under another name its uses are not seen
        return True
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if imports and name not in OF_TIME:
                return True
            case ast.ImportFrom(module="time", names=names) if {each.name for each in names} - OF_TIME:
                return True
            case ast.Attribute(
                value=ast.Name(id="datetime" | "date") | ast.Attribute(attr="datetime" | "date"), attr=name
            ) if name in OF_DATETIME:
                return True
            case ast.Attribute(attr=name) if re.fullmatch(r"st_[amc]time(_ns)?|get[amc]time|utime", name):
                return True
    return False


def test_every_use_of_the_system_time_is_known() -> None:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    found = {str(path.relative_to(ROOT)) for path in files if uses_system_time(path)}
    assert found == set(USES)


def test_the_native_shim_uses_the_monotonic_clock_only() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "cni_contrail" / "shim").glob("*.[ch]"))
    assert set(re.findall(r"\bCLOCK_\w+", sources)) == {"CLOCK_MONOTONIC"}
    assert not re.search(r"\b(time|gettimeofday|ftime)\(", sources)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    clock = SystemClock()
    monkeypatch.setattr(time, "time", clock)
    return clock


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])
class TestJumps:
    def test_what_was_postponed_is_due_at_once(self, clock: SystemClock, tmp_path: Path, jump: float) -> None:
        request = tmp_path / "request"
        request.touch()
        postpone(str(request))
        assert not is_due(str(request))
        clock.ahead += jump
        assert is_due(str(request))

    def test_a_file_that_is_being_created_is_not_lost(
        self, clock: SystemClock, tmp_path: Path, jump: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = os.link

        def link_after_the_jump(part: str, path: str) -> None:
            if not clock.ahead:
                clock.ahead = jump
                remove_old_partial_files(str(tmp_path), 60)
            link(part, path)

        monkeypatch.setattr(os, "link", link_after_the_jump)
        create_atomically(str(tmp_path / "file"), b"content")
        assert (tmp_path / "file").read_bytes() == b"content"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_clock_that_is_set_back_by_less_than_a_pause_costs_one_longest_pause(
    clock: SystemClock, tmp_path: Path
) -> None:
    request = tmp_path / "request"
    request.touch()
    clock.ahead = -postponement._LONGEST_PAUSE / 2
    assert not is_due(str(request))
    clock.ahead = 0.1
    assert is_due(str(request))
