"""The node-wide file of settings, `/etc/contrail/cni.json`: read again when it has changed, not at each call.

That it has not is told by its identity, size and times. These tell every change but one of the same tick of the clock
(4 to 10 ms) as the reading; so what was changed less than a second before it was read is read again the next time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Check = Callable[[Mapping[str, Any], str], Mapping[str, Any]]

NODE_FILE = "/etc/contrail/cni.json"
NODE_FILE_VARIABLE = "CONTRAIL_CNI_CONFIG"

_SETTLED = 1.0  # seconds since the last change


class _Kept(NamedTuple):
    """What was read, and how the file looked before it was."""

    look: tuple[int, ...]
    values: Mapping[str, Any]


_kept: dict[str, _Kept] = {}


def read_node_file(environment: Mapping[str, str], check: Check) -> Mapping[str, Any]:
    """Returns what `check` makes of the object in the file and of its path; nothing if the file is not there.

    Raises `PluginError` with code 7 that names the file if it holds no object, and what `check` raises.
    """
    path = environment.get(NODE_FILE_VARIABLE) or NODE_FILE
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    look = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    kept = _kept.get(path)
    if kept is None or kept.look != look:
        kept = _Kept(look, check(_read(path), path))
        if status.st_ctime < time.time() - _SETTLED:
            _kept[path] = kept
    return kept.values


def _read(path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(), object_pairs_hook=_unique_keys)
    except FileNotFoundError:  # it went just now
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(document, dict):
        raise PluginError(Code.INVALID_CONFIG, f"{path} must hold a JSON object")
    return document


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object; raises `ValueError` for a duplicate key, of which `json` would let the last one win.

    `contrail_yaml.duplicate_keys` has the same rule for all other programs: this module is on the path of ADD, which
    imports the standard library only.
    """
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"duplicate key {key}: {json.dumps(values[key])} and {json.dumps(value)}")
        values[key] = value
    return values


def _unreadable(path: str, error: Exception) -> PluginError:
    return PluginError(Code.INVALID_CONFIG, f"{path} cannot be read: {error}")
