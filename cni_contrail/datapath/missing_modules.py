"""Kernel modules that the datapath needs: an error that names the one that is missing.

The kernel loads them on demand, and answers with an error number that says little if it cannot.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.message import NetlinkRequest

_NO_NF_TABLES = (errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EINVAL)
"""EINVAL: the answer to a read if nfnetlink is there and nf_tables is not."""

_OF_NF_TABLES = (
    "open a netlink socket", "begin a transaction", "create table", "find table", "read the generation",
    "read the rules of table",
)  # fmt: skip
_KINDS_OF_LINKS = {"create bridge": "bridge", "create uplink": "veth", "create tunnel": "vxlan"}


MISSING = "kernel module "
"""Begins the text of a MissingModuleError; STATUS recognizes it in the agent's reasons."""


class MissingModuleError(LinkError):
    """The kernel has no module `module`, and cannot load it."""

    def __init__(self, module: str, cause: KernelError) -> None:
        super().__init__(f"{MISSING}{module} is missing: {cause}")
        self.module = module


def open_filters() -> NftablesSocket:
    """Opens an nf_tables socket; raises MissingModuleError or KernelError."""
    try:
        return NftablesSocket()
    except KernelError as error:
        raise explained(error) from error


def commit(
    filters: NftablesSocket, requests: Sequence[NetlinkRequest], modules: Mapping[str, str], generation: int = 0
) -> None:
    """Executes a transaction that creates a table, as `NftablesSocket.commit` does.

    `modules` are by the beginning of a request's `what`. Raises MissingModuleError or KernelError.
    """
    try:
        filters.commit(requests, generation)
    except KernelError as error:
        raise explained(error, modules) from error


def explained(error: LinkError, modules: Mapping[str, str] = MappingProxyType({})) -> LinkError:
    """Returns the error, or one that names the missing module; `modules` as for `commit`."""
    if not isinstance(error, KernelError):
        return error
    if error.errno in _NO_NF_TABLES and error.what.startswith(_OF_NF_TABLES):
        return MissingModuleError("nf_tables", error)
    causes = {errno.ENOENT: modules, errno.EOPNOTSUPP: _KINDS_OF_LINKS}.get(error.errno, {})
    for what, module in causes.items():
        if error.what.startswith(what):
            return MissingModuleError(module, error)
    return error
