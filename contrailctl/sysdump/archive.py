"""Archive of a system dump: files in a temporary folder, then one `tar.gz` that only its owner can read."""

import contextlib
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from contrailctl.errors import ContrailctlError, UsageError


class DumpFolder:
    """The files of a dump below `root`. `problems` says what could not be collected."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Writes a file; `name` may have folders. Raises ContrailctlError if the disk is full, for example."""
        path = self.path(name)
        with _named_errors(path):
            path.write_text(text, encoding="utf-8", errors="replace")

    def path(self, name: str) -> Path:
        """Returns the path of a file, whose folder exists then. Raises ContrailctlError."""
        path = self.root / name
        with _named_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def count(self) -> int:
        """Returns the number of files."""
        return sum(len(files) for _, _, files in os.walk(self.root))


@contextlib.contextmanager
def dump_folder() -> Iterator[DumpFolder]:
    """Yields an empty folder, which is removed at the end. Raises ContrailctlError."""
    with tempfile.TemporaryDirectory(prefix="contrail-sysdump-") as root:
        yield DumpFolder(Path(root))


def check_target(target: Path) -> None:
    """Raises UsageError unless the archive can be created there."""
    if target.exists():
        raise UsageError(f"{target}: already exists")
    if not os.access(target.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"{target.absolute().parent}: not a folder in which files can be created")


def pack(folder: DumpFolder, target: Path) -> int:
    """Creates the archive and returns its size in bytes. Raises ContrailctlError; an incomplete one is removed."""
    top = target.name.removesuffix(".gz").removesuffix(".tar")
    with _named_errors(target):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
                archive.add(folder.root, arcname=top, filter=_anonymous)
        except BaseException:
            target.unlink()
            raise
    return target.stat().st_size


@contextlib.contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Raises ContrailctlError, which names the path, for an OSError."""
    try:
        yield
    except OSError as error:
        raise ContrailctlError(f"{path}: {error.strerror}") from error


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leaves out who made the dump."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
