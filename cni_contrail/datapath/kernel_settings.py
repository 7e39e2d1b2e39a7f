"""Kernel settings below /proc/sys/net: what is found, what differs from what is desired, and writing that.

Settings are values by key, such as `ipv4/ip_forward`. They are those of the network namespace of the calling thread.
One that already has its value is not written: that would need a writable mount, and the kernel may take a lock for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from cni_contrail.link.errors import SysctlError
from cni_contrail.link.sysctls import ensure_setting

_MAX_BYTES = 32  # longer than any number


def read_settings(sysctl_dir: str, keys: Iterable[str]) -> dict[str, str]:
    """Returns the values of these settings; raises SysctlError."""
    return {key: _read(sysctl_dir, key) for key in keys}


def differing(desired: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """Returns the desired settings that have another value, in their order. Pure."""
    return {key: value for key, value in desired.items() if found.get(key) != value}


def write_settings(sysctl_dir: str, settings: Mapping[str, str]) -> int:
    """Writes settings in their order; returns their number. Raises SysctlError."""
    for key, value in settings.items():
        path = _path(sysctl_dir, key)
        try:
            ensure_setting(path, value.encode())
        except OSError as error:
            raise _error(f"set {_name(key)} to {value}", path, error) from error
    return len(settings)


def _read(sysctl_dir: str, key: str) -> str:
    path = _path(sysctl_dir, key)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, _MAX_BYTES).decode().strip()
        finally:
            os.close(fd)
    except OSError as error:
        raise _error(f"read {_name(key)}", path, error) from error


def _path(sysctl_dir: str, key: str) -> str:
    return f"{sysctl_dir}/net/{key}"


def _name(key: str) -> str:
    return f"net.{key.replace('/', '.')}"


def _error(what: str, path: str, error: OSError) -> SysctlError:
    return SysctlError(f"{what}: {path}: {error.strerror}")
