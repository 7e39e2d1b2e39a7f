"""Versions of the CNI specification: which are served, and which commands a configuration's version allows."""

import json

from cni_contrail.errors import Code, PluginError

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0")
CURRENT = SUPPORTED[-1]

_FIRST_WITH_CHECK = "0.4.0"


def version_document() -> str:
    """Answers VERSION (specification 1.0.0, section 2)."""
    return json.dumps({"cniVersion": CURRENT, "supportedVersions": SUPPORTED})


def check_version(command: str, version: str) -> None:
    """Raises `PluginError` if a configuration of that version does not allow the command (code 1, or 6)."""
    if command == "CHECK":
        asked = _parts(version)
        if asked < _parts(_FIRST_WITH_CHECK):
            raise PluginError(
                Code.INCOMPATIBLE_VERSION, "config version does not allow CHECK", f'config is "{version}"'
            )
        if asked > _parts(CURRENT):
            raise PluginError(
                Code.INCOMPATIBLE_VERSION, "plugin version does not allow CHECK", f'config is "{version}"'
            )
    if version not in SUPPORTED:
        supported = " ".join(f'"{each}"' for each in SUPPORTED)
        raise PluginError(
            Code.INCOMPATIBLE_VERSION,
            "incompatible CNI versions",
            f'config is "{version}", plugin supports [{supported}]',
        )


def allows_chains(version: str) -> bool:
    """Whether results of that (supported) version have lists, and can be passed to the next plugin (from 0.3.0 on)."""
    return _parts(version) >= (0, 3, 0)


def _parts(version: str) -> tuple[int, int, int]:
    words = version.split(".")
    if len(words) > 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise PluginError(Code.DECODING_FAILURE, f'cniVersion "{version}" is no version')
    major, minor, micro = [*map(int, words), 0, 0][:3]
    return major, minor, micro
