"""Network configuration, which the runtime writes to the plugin's standard input: decodes and validates it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.protocol.environment import IDENTIFIER
from cni_contrail.quoting import cut, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_CONFIG = 1024 * 1024
"""Maximum size of a network configuration in bytes, for the entry point, the shim and the daemon."""

_MAX_CACHED = 16 * 1024  # bytes
_MAX_LEVELS = 100  # of objects and lists in each other; configurations and results have about ten
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_VERSION_IF_ABSENT = "0.1.0"  # the default of the reference library
_DNS_LISTS = ("nameservers", "search", "options")
_VALID_LISTS = ("cni.dev/valid-attachments", "cni.dev/attachments")  # the second one is deprecated


class NetworkConfig(NamedTuple):
    """`document` is the whole configuration; `version` is its cniVersion, not yet validated."""

    name: str
    version: str
    document: Mapping[str, Any]


def read_config(data: bytes) -> NetworkConfig:
    """Decodes a configuration; raises `PluginError`: code 6 if it is malformed, 7 for an invalid network name.

    A runtime sends the same bytes for each pod, so the last few results are cached; callers must not change them.
    """
    return _read_cached(data) if len(data) <= _MAX_CACHED else _read(data)


def _read(data: bytes) -> NetworkConfig:
    document = _decode(data)
    name = _text(document, "name")
    if not name:
        raise PluginError(Code.INVALID_CONFIG, "missing network name")
    if not IDENTIFIER.fullmatch(name):
        raise PluginError(Code.INVALID_CONFIG, "invalid characters found in network name", cut(name))
    return NetworkConfig(name, _text(document, "cniVersion") or _VERSION_IF_ABSENT, document)


_read_cached = functools.lru_cache(maxsize=4)(_read)


def object_at(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns the object at a key, empty if absent or null; raises `PluginError` with code 7 for another type."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PluginError(Code.INVALID_CONFIG, f"{key} must be an object, not {quoted(value)}")
    return value


def reject_unsupported_fields(config: NetworkConfig) -> None:
    """Raises `PluginError` with code 2 for `ipam` and `ipMasq`: addresses come only from the agent."""
    for key in ("ipam", "ipMasq"):
        value = config.document.get(key)
        if value not in (None, False, {}):
            raise PluginError(Code.UNSUPPORTED_FIELD, f"unsupported field {key}: {quoted(value)}")


def config_dns(config: NetworkConfig) -> dict[str, Any]:
    """Returns the configuration's own `dns`, empty without one; raises `PluginError` with code 7 for a wrong type."""
    dns = object_at(config.document, "dns")
    for key in _DNS_LISTS:
        value = dns.get(key)
        if value is not None and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise PluginError(Code.INVALID_CONFIG, f"dns.{key} must be a list of strings, not {quoted(value)}")
    if not isinstance(dns.get("domain", ""), str):
        raise PluginError(Code.INVALID_CONFIG, f"dns.domain must be a string, not {quoted(dns['domain'])}")
    return {key: value for key, value in dns.items() if value}


def valid_attachments(config: NetworkConfig) -> list[tuple[str, str]]:
    """Returns container ID and CNI_IFNAME of each attachment that GC must keep; null means none.

    Raises `PluginError` with code 7 if the list is malformed or absent: a runtime that sends no list does not say that
    nothing is valid.
    """
    key = next((key for key in _VALID_LISTS if key in config.document), None)
    if key is None:
        raise PluginError(Code.INVALID_CONFIG, f"GC needs {_VALID_LISTS[0]}: nothing is released without it")
    attachments = config.document[key]
    if attachments is None:
        return []
    if not isinstance(attachments, list):
        raise PluginError(Code.INVALID_CONFIG, f"{key} must be a list, not {quoted(attachments)}")
    return [_attachment(each, key) for each in attachments]


def _attachment(document: Any, key: str) -> tuple[str, str]:
    known = document if isinstance(document, dict) else {}
    container, ifname = known.get("containerID"), known.get("ifname")
    if not isinstance(container, str) or not isinstance(ifname, str):
        must_be = 'objects with "containerID" and "ifname"'
        raise PluginError(Code.INVALID_CONFIG, f"{key} must hold {must_be}, not {quoted(document)}")
    return container, ifname


def _decode(data: bytes) -> Mapping[str, Any]:
    _reject_deep_nesting(data)
    try:
        # Python's decoder accepts NaN and Infinity, which are not JSON: other plugins could not read our result.
        document = json.loads(data.decode(), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise PluginError(Code.DECODING_FAILURE, f"network configuration is not JSON: {error}") from error
    if document is None:
        return {}  # `null`, which Go decodes to an empty configuration
    if not isinstance(document, dict):
        raise PluginError(Code.DECODING_FAILURE, "network configuration is not a JSON object")
    return document


def _reject_deep_nesting(data: bytes) -> None:
    """Raises `PluginError` with code 6 for more than 100 levels.

    Python's decoder and encoder use the stack for each level. Not every version limits the levels to what fits on the
    stack of a thread, and a tenant's configuration must not end the daemon.
    """
    if data.count(b"[") + data.count(b"{") <= _MAX_LEVELS:
        return
    # Without escapes, every second part between quotes is a string.
    outside_strings = b"".join(data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    levels = 0
    for bracket in outside_strings.translate(None, _OTHERS):
        levels += 1 if bracket in b"[{" else -1
        if levels > _MAX_LEVELS:
            message = f"network configuration is nested deeper than {_MAX_LEVELS} levels"
            raise PluginError(Code.DECODING_FAILURE, message)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PluginError(Code.DECODING_FAILURE, f"{key} must be a string, not {quoted(value)}")
    return value
