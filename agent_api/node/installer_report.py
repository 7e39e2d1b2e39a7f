"""Report of the node installer, a file: what it could not install, and what takes the place of what it installed.

The installer (`contrail-installer`) has no access to the cluster; the agent passes on what it says. A node without the
installer has no such file. Installer and agent may be of different releases: unknown keys are ignored, and a file whose
`version` is not the one of `cni_contrail.installer.report` is rejected as a whole.
"""

import logging

import msgspec

log = logging.getLogger(__name__)

_VERSION = 1


class InstallerReport(msgspec.Struct, frozen=True):
    """`errors` are tried again; `conflicts`: what others have on the node that takes effect instead."""

    errors: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class _Versioned(msgspec.Struct):
    version: object = _VERSION  # earlier releases wrote none


_NOTHING = InstallerReport()
_DECODER = msgspec.json.Decoder(InstallerReport)
_VERSION_DECODER = msgspec.json.Decoder(_Versioned)


def read_installer_report(path: str) -> InstallerReport:
    """Returns the report; an empty one if there is none, or if it cannot be read, which is logged. Blocking."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        version = _VERSION_DECODER.decode(content).version  # alone: another one may have other types
        if version == _VERSION:
            return _DECODER.decode(content)
        log.error("report of the installer: %s: has version %s, this release reads version %d", path, version, _VERSION)
    except FileNotFoundError:
        return _NOTHING
    except OSError as error:
        log.error("report of the installer: %s: %s", path, error.strerror)  # noqa: TRY400 - the message is complete
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.error("report of the installer: %s: %s", path, error)  # noqa: TRY400 - the message is complete
    return _NOTHING
