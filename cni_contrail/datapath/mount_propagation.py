"""Whether mounts below a directory reach the host, as the kernel says of the mount that the directory is in.

A mount that only receives what is mounted elsewhere is a slave (`master:` in mountinfo, see mount_namespaces(7)): that
of a container with propagation HostToContainer, or of a service that systemd gives a mount namespace of its own.

Not promised: that mounts of a private mount reach the host. That is the host without propagation, or a container that
sees nothing of its host; the two look alike.
"""

from __future__ import annotations

import os

from cni_contrail.link.errors import NetnsError

_MOUNT_ID, _FIRST_OPTION, _END_OF_OPTIONS = 0, 6, "-"


def is_slave(directory: str) -> bool:
    """Returns whether the directory, or the closest one above it that exists, is in a mount that only receives mounts.

    Raises NetnsError.
    """
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    try:
        mount = _mount_id(directory)
        with open("/proc/thread-self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            return any(_is_slave(line.split(), mount) for line in mounts)
    except OSError as error:
        raise NetnsError(f"{directory}: cannot read how it is mounted: {error.strerror}") from error


def _is_slave(fields: list[str], mount: str) -> bool:
    options = fields[_FIRST_OPTION : fields.index(_END_OF_OPTIONS, _FIRST_OPTION)]
    return fields[_MOUNT_ID] == mount and any(option.startswith("master:") for option in options)


def _mount_id(directory: str) -> str:
    descriptor = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/thread-self/fdinfo/{descriptor}", encoding="ascii") as lines:
            return next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
    finally:
        os.close(descriptor)
