"""Interprets a plugin's exit status and output (CNI specification 1.1.0, section 5)."""

import json
from typing import Any

from cni_contrail.runtime.errors import CniRuntimeError, PluginCallError, PluginFailedError, ResultError
from cni_contrail.runtime.execute import Completed
from cni_contrail.runtime.result_validation import result_problem

_WITHOUT_LIST = ("0.1.0", "0.2.0")
"""Versions supported by a plugin whose VERSION result states the last of these and has no list."""

_MAX_QUOTED = 1000  # characters of a plugin's output in an error message


def check_success(plugin: str, command: str, completed: Completed) -> None:
    """Raises PluginCallError if the plugin returned an error, PluginFailedError if it failed without one."""
    if completed.status != 0:
        raise _failure(plugin, command, completed)


def read_result(plugin: str, version: str, completed: Completed) -> dict[str, Any]:
    """Returns the result of a successful ADD. A result without a version has that of the configuration.

    Raises PluginFailedError if there is no result, ResultError if it has another version or is malformed.
    """
    result = _json_object(completed.stdout)
    if result is None:
        raise PluginFailedError(f"plugin {plugin} succeeded (ADD) without a result: {_quote(completed.stdout)}")
    stated = result.get("cniVersion") or version
    if stated != version:
        raise ResultError(f"plugin {plugin}: result has CNI version {stated!r}, its configuration {version}")
    if problem := result_problem(result, version):
        raise ResultError(f"plugin {plugin}: malformed result: {problem}")
    return {**result, "cniVersion": version}


def read_versions(plugin: str, completed: Completed) -> tuple[str, ...]:
    """Returns the supported versions from a successful VERSION. Raises PluginFailedError."""
    result = _json_object(completed.stdout) or {}
    stated, supported = result.get("cniVersion"), result.get("supportedVersions")
    if stated == _WITHOUT_LIST[-1] and not supported:
        return _WITHOUT_LIST
    if not (stated and supported and isinstance(supported, list) and all(isinstance(each, str) for each in supported)):
        raise PluginFailedError(f"plugin {plugin}: VERSION result lists no versions: {_quote(completed.stdout)}")
    return tuple(supported)


def _failure(plugin: str, command: str, completed: Completed) -> CniRuntimeError:
    failed = f"plugin {plugin} failed ({command}, {_exit_reason(completed.status)})"
    if not completed.stdout.strip():
        stderr = f": {_quote(completed.stderr)}" if completed.stderr.strip() else ""
        return PluginFailedError(f"{failed} with no error message{stderr}")
    error = _json_object(completed.stdout)
    if error is None or not isinstance(error.get("code"), int) or not isinstance(error.get("msg"), str):
        return PluginFailedError(f"{failed} and its error message cannot be read: {_quote(completed.stdout)}")
    details = error.get("details") or ""
    return PluginCallError(plugin, command, code=error["code"], msg=error["msg"], details=str(details))


def _exit_reason(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"


def _json_object(output: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(output)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _quote(output: bytes) -> str:
    text = output.decode(errors="replace").strip()
    return repr(text[:_MAX_QUOTED]) if text else "its output is empty"
