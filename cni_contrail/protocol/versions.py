"""Versions of the CNI specification: which are supported, and which commands each allows."""

import functools
import json
import re

from cni_contrail.errors import Code, PluginError
from cni_contrail.quoting import cut

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
CURRENT = SUPPORTED[-1]

_FIRST_WITH = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
_NUMBER = re.compile(r"[0-9]{1,9}")


def version_document() -> str:
    """Returns the result of VERSION (specification 1.1.0, section 2)."""
    return json.dumps({"cniVersion": CURRENT, "supportedVersions": SUPPORTED})


def check_version(command: str, version: str) -> None:
    """Raises `PluginError` if a configuration of that version does not allow the command (code 1, or 6)."""
    if command in _FIRST_WITH:
        asked = _parts(version)
        if asked < _parts(_FIRST_WITH[command]):
            raise _not_allowed(f"config version does not allow {command}", version)
        if asked > _parts(CURRENT):
            raise _not_allowed(f"plugin version does not allow {command}", version)
    if version not in SUPPORTED:
        supported = " ".join(f'"{each}"' for each in SUPPORTED)
        raise PluginError(
            Code.INCOMPATIBLE_VERSION,
            "incompatible CNI versions",
            f'config is "{cut(version)}", plugin supports [{supported}]',
        )


def supports_chaining(version: str) -> bool:
    """Returns whether results of the (supported) version have lists that a next plugin can extend: from 0.3.0 on."""
    return _parts(version) >= (0, 3, 0)


def has_mtu(version: str) -> bool:
    """Returns whether interfaces in results of the (supported) version have an MTU: from 1.1.0 on."""
    return _parts(version) >= (1, 1, 0)


def _not_allowed(message: str, version: str) -> PluginError:
    return PluginError(Code.INCOMPATIBLE_VERSION, message, f'config is "{cut(version)}"')


@functools.lru_cache(maxsize=8)
def _parts(version: str) -> tuple[int, int, int]:
    words = version.split(".")
    if len(words) > 3 or not all(_NUMBER.fullmatch(word) for word in words):
        raise PluginError(Code.DECODING_FAILURE, f'cniVersion "{cut(version)}" is not a version')
    # As in the reference library, missing parts are 0.
    major, minor, micro = [*map(int, words), 0, 0][:3]
    return major, minor, micro
