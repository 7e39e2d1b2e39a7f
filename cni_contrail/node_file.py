"""Node-wide settings file, `/etc/contrail/cni.json`, cached until it changes.

A change is detected by inode, size and times. They miss a change within the same clock tick (4 to 10 ms) as the read,
so a file that changed less than a second before it was read is not cached.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.quoting import cut, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Check = Callable[[Mapping[str, Any], str], Mapping[str, Any]]

NODE_FILE = "/etc/contrail/cni.json"
NODE_FILE_VARIABLE = "CONTRAIL_CNI_CONFIG"

_MIN_AGE = 1.0  # seconds since the last change


class _CachedFile(NamedTuple):
    """Parsed content, and the file's fingerprint from before it was read."""

    fingerprint: tuple[int, ...]
    values: Mapping[str, Any]


_cache: dict[str, _CachedFile] = {}


def read_node_file(environment: Mapping[str, str], check: Check) -> Mapping[str, Any]:
    """Returns `check(object, path)` for the JSON object in the file, empty if there is no file.

    Raises `PluginError` with code 7, which names the file, if it holds no object, and whatever `check` raises.
    """
    path = environment.get(NODE_FILE_VARIABLE) or NODE_FILE
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    # Taken before the file is read: a change in between is detected at the next call.
    fingerprint = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    cached = _cache.get(path)
    if cached is None or cached.fingerprint != fingerprint:
        cached = _CachedFile(fingerprint, check(_read(path), path))
        if status.st_ctime < time.time() - _MIN_AGE:
            _cache[path] = cached
    return cached.values


def _read(path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(), object_pairs_hook=_unique_keys)
    except FileNotFoundError:  # removed since the `stat`
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(document, dict):
        raise PluginError(Code.INVALID_CONFIG, f"{path}: must hold a JSON object")
    return document


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object; raises `ValueError` for a duplicate key: `json` would keep the last value.

    `contrail_yaml.duplicate_keys` has the same rule for all other programs: this module is on the path of ADD, which
    imports the standard library only.
    """
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"duplicate key {cut(key)}: {quoted(values[key])} and {quoted(value)}")
        values[key] = value
    return values


def _unreadable(path: str, error: Exception) -> PluginError:
    return PluginError(Code.INVALID_CONFIG, f"{path}: cannot be read: {error}")
