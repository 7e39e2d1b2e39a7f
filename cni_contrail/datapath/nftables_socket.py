"""nf_tables socket: applies changes as one transaction, and reads what is there.

All changes of a batch become visible at once, or, after an error, none.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import NetlinkSocket
from cni_contrail.link.message import NetlinkRequest

_NETLINK_NETFILTER = 12
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11  # NFNL_MSG_BATCH_...
_BATCH_GENERATION = 1  # NFNL_BATCH_GENID
_GET_GENERATION, _GENERATION_ID = 10 << 8 | 16, 1  # NFT_MSG_GETGEN, NFTA_GEN_ID
_HEADER = struct.pack("!BBH", 0, 0, 0)  # struct nfgenmsg
_BATCH = struct.pack("!BBH", 0, 0, 10)  # struct nfgenmsg with NFNL_SUBSYS_NFTABLES


class NftablesSocket(NetlinkSocket):
    """A socket that stays in the network namespace that the calling thread was in when it was opened.

    Not thread-safe.
    """

    __slots__ = ("commits",)

    PROTOCOL = _NETLINK_NETFILTER

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        """Number of transactions that this socket has executed."""

    def generation(self) -> int:
        """Returns a number that every change of the namespace's rules changes, whoever makes it."""
        (answer,) = self.get([NetlinkRequest(_GET_GENERATION, 0, _HEADER, "read the generation of nf_tables")])
        if isinstance(answer, KernelError):
            raise answer
        return int.from_bytes(message.attributes(answer[len(_HEADER) :])[_GENERATION_ID], "big")

    def known_generation(self, read: int, commits: int) -> int:
        """Returns the newest generation whose rules the caller knows.

        It has read the rules of generation `read`, when `commits` was this socket's number. The current one if only
        this socket has changed them since, otherwise the one that was read.
        """
        current = self.generation()
        return current if current - read == self.commits - commits else read

    def commit(self, requests: Sequence[NetlinkRequest], generation: int = 0) -> None:
        """Executes all requests as one transaction; raises the first error as KernelError, after which none holds.

        With a `generation`, the error is ERESTART if something has changed since.
        """
        if not requests:
            return
        condition = message.attribute(_BATCH_GENERATION, generation.to_bytes(4, "big")) if generation else b""
        begin = NetlinkRequest(_BATCH_BEGIN, 0, _BATCH + condition, "begin a transaction")
        # Errors are answered in any case. The acknowledgement of the end is so only since Linux 6.10.
        *others, last = requests
        acknowledged = last._replace(flags=last.flags | message.ACKNOWLEDGE)
        end = NetlinkRequest(_BATCH_END, 0, _BATCH, "end a transaction")
        errors = self._execute_transaction([begin, *others, acknowledged, end])
        if errors:
            raise errors[min(errors)]
        self.commits += 1
