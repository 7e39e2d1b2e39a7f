"""The variables of a call (CNI specification 1.1.0, section 2, "Parameters"), as libcni sets them."""

import os
from collections.abc import Sequence

from cni_contrail.runtime.attachment import Attachment

_DUMMY = "dummy"
"""What VERSION has where old plugins look for a value before they look at the command."""


def attachment_variables(command: str, attachment: Attachment, plugin_dirs: Sequence[str]) -> dict[str, str]:
    """Those of ADD, CHECK and DEL."""
    return {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": attachment.container_id,
        "CNI_NETNS": attachment.netns,
        "CNI_IFNAME": attachment.ifname,
        "CNI_ARGS": ";".join(f"{key}={value}" for key, value in attachment.args),
        "CNI_PATH": os.pathsep.join(plugin_dirs),
    }


def network_variables(command: str, plugin_dirs: Sequence[str]) -> dict[str, str]:
    """Those of STATUS and GC: what belongs to an attachment is there, and empty."""
    of_attachments = dict.fromkeys(("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"), "")
    return {"CNI_COMMAND": command, **of_attachments, "CNI_PATH": os.pathsep.join(plugin_dirs)}


def version_variables() -> dict[str, str]:
    """Those of VERSION."""
    return {**network_variables("VERSION", [_DUMMY]), "CNI_NETNS": _DUMMY, "CNI_IFNAME": _DUMMY}
