"""Model test: after any sequence of file operations, the state equals that of a fresh scan.

The exception are objects of broken files, which stay; the model covers them. Uids are not tested here.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from manager.manifests.inventory import FolderState
from manager.manifests.manifest_folder import ManifestFolder
from tests.manager.manifests.conftest import nad, pod

PATHS = {"a.yaml", "b.yml", "sub/deep/c.yaml"}
paths = st.sampled_from(sorted(PATHS))
names = st.lists(st.sampled_from(["web", "db", "cache"]), max_size=3, unique=True)
BROKEN = "kind: ["


class FolderMachine(RuleBasedStateMachine):
    """`expected` has the objects by file path; a broken file keeps its earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ticks: Iterator[int] = itertools.count()
        self.reader = ManifestFolder(
            str(self.folder), node="n", quiet_period=0.5, rescan=1e9, clock=lambda: float(next(self.ticks))
        )
        self.expected: dict[str, tuple[set[str], bool]] = {}
        self.last = FolderState({}, (), complete=True)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def write(self, path: str, content: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(content)

    @rule(path=paths, names=names)
    def fill(self, path: str, names: list[str]) -> None:
        self.write(path, "".join(pod(name) + nad(name) for name in names))
        self.expected[path] = (set(names), True)

    @rule(path=paths)
    def damage(self, path: str) -> None:
        before, _ = self.expected.get(path, (set(), True))
        self.write(path, BROKEN)
        self.expected[path] = (before, False)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        (self.folder / path).unlink(missing_ok=True)
        self.expected.pop(path, None)

    @precondition(lambda machine: 0 < len(machine.expected) < len(PATHS))
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        """Renames to an unused path; a broken file keeps its objects."""
        old = data.draw(st.sampled_from(sorted(self.expected)))
        new = data.draw(st.sampled_from(sorted(PATHS - self.expected.keys())))
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / old).rename(self.folder / new)
        self.expected[new] = self.expected.pop(old)

    @invariant()
    def state_matches_the_files(self) -> None:
        for _ in range(3):
            self.last = self.reader.refresh() or self.last
        found = {name for names, _ in self.expected.values() for name in names}
        assert {(kind, name) for kind, _, name in self.last.objects} == {
            (kind, name) for name in found for kind in ("Pod", "NetworkAttachmentDefinition")
        }
        assert self.last.complete == all(whole for _, whole in self.expected.values())


TestFolder = FolderMachine.TestCase
TestFolder.settings = settings(max_examples=60, stateful_step_count=20)
