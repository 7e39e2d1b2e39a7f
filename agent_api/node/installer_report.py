"""Report of the node installer, a file: what it could not install, and what takes the place of what it installed.

The installer (`contrail-installer`) has no access to the cluster; the agent passes on what it says. A node without the
installer has no such file.
"""

import logging

import msgspec

log = logging.getLogger(__name__)


class InstallerReport(msgspec.Struct, frozen=True):
    """`errors` are tried again; `conflicts`: what others have on the node that takes effect instead."""

    errors: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


_NOTHING = InstallerReport()
_DECODER = msgspec.json.Decoder(InstallerReport)


def read_installer_report(path: str) -> InstallerReport:
    """Returns the report; an empty one if there is none, or if it cannot be read, which is logged. Blocking."""
    try:
        with open(path, "rb") as file:
            return _DECODER.decode(file.read())
    except FileNotFoundError:
        return _NOTHING
    except OSError as error:
        log.error("report of the installer: %s: %s", path, error.strerror)  # noqa: TRY400 - the message is complete
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.error("report of the installer: %s: %s", path, error)  # noqa: TRY400 - the message is complete
    return _NOTHING
