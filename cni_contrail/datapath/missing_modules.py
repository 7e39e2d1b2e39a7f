"""Kernel modules that the datapath needs: an error that names the one that is missing.

The kernel loads them on demand, and answers with an error number that says little if it cannot.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.message import NetlinkRequest

_NO_NF_TABLES = (errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT)


class MissingModuleError(LinkError):
    """The kernel has no module `module`, and cannot load it."""

    def __init__(self, module: str, cause: KernelError) -> None:
        super().__init__(f"kernel module {module} is missing: {cause}")
        self.module = module


def open_filters() -> NftablesSocket:
    """Opens an nf_tables socket; raises MissingModuleError or KernelError."""
    try:
        return NftablesSocket()
    except KernelError as error:
        raise explained(error, {}) from error


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


def explained(error: KernelError, modules: Mapping[str, str]) -> LinkError:
    """Returns the error, or one that names the missing module."""
    if error.errno in _NO_NF_TABLES:
        return MissingModuleError("nf_tables", error)
    if error.errno == errno.ENOENT:
        for what, module in modules.items():
            if error.what.startswith(what):
                return MissingModuleError(module, error)
    return error
