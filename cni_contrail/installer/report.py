"""Report of the installer: a file that the probes of its container and the node's agent read.

Its name is fixed and it is on tmpfs. Who holds the lock writes it; it outlives its writer until the next one begins. So
its readers may be of another release.
"""

import json
from typing import Any, NamedTuple

from cni_contrail.installer.errors import InstallError
from cni_contrail.log import Log
from cni_contrail.quoting import quoted
from cni_contrail.state.files import read_if_exists, write_atomically

FILE = "installer.json"

INSTALL = "install"
UNINSTALL = "uninstall"

# Of the file format; no other version is read. Keys may be added without a new one: readers ignore what they do not
# know, and one that is missing has its default. The agent (`agent_api.node.installer_report`) reads the same one.
_VERSION = 1


class Report(NamedTuple):
    """`action` is what the process does, INSTALL or UNINSTALL, and `done` whether that is done.

    `waiting`: what it waits for. `errors`: what failed and is tried again. `conflicts`: what others have on the node
    that takes effect instead of what is installed. `source` is the digest of what is to be installed (`paths`).
    """

    action: str
    done: bool = False
    waiting: str = ""
    errors: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    source: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that people should know."""
        return (*([f"waiting: {self.waiting}"] if self.waiting else []), *self.errors, *self.conflicts)


class Reporter:
    """Writes the report in `run_dir`, and logs what is new in it."""

    def __init__(self, run_dir: str, log: Log) -> None:
        self._file = f"{run_dir}/{FILE}"
        self._log = log
        self._last: Report | None = None

    def report(self, report: Report) -> None:
        """Replaces the report, also if it is the same: another process may have written since. Raises PluginError."""
        text = json.dumps({"version": _VERSION, **report._asdict()}, ensure_ascii=False)
        write_atomically(self._file, text.encode(errors="replace"))  # names of files need not be UTF-8
        known = self._last.texts if self._last else ()
        for text in report.texts:
            if text not in known:
                self._log.warning(text)
        if report.done and not (self._last and self._last.done):
            self._log.info(f"{report.action}: done")
        self._last = report


def read_report(run_dir: str) -> Report | None:
    """Returns the report in `run_dir`, None if there is none.

    Raises PluginError, and InstallError if it is malformed or of another version.
    """
    file = f"{run_dir}/{FILE}"
    content = read_if_exists(file)
    if content is None:
        return None
    try:
        document = json.loads(content)
        version = document.get("version", _VERSION)  # earlier releases wrote none
        if version == _VERSION:
            return _decoded(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InstallError(f"{file}: is malformed: {error}") from error
    raise InstallError(f"{file}: has version {quoted(version)}, this release reads version {_VERSION}")


def _decoded(document: dict[str, Any]) -> Report:
    known = {key: document[key] for key in Report._fields if key in document}
    return Report(**known | {key: tuple(known.get(key, ())) for key in ("errors", "conflicts")})
