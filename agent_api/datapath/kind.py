"""Kinds of datapath that a node may have."""

from enum import StrEnum


class Datapath(StrEnum):
    """What connects the host ends of interfaces: the node's Linux kernel, or something else (none), as a vrouter."""

    LINUX = "linux"
    NONE = "none"


DEFAULT_DATAPATH = Datapath.NONE
