"""nf_tables socket: applies changes as one transaction, and reads what is there.

All changes of a batch become visible at once, or, after an error, none.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cni_contrail.link import message
from cni_contrail.link.exchange import NetlinkSocket
from cni_contrail.link.message import NetlinkRequest

_NETLINK_NETFILTER = 12
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11  # NFNL_MSG_BATCH_...
_BATCH = struct.pack("!BBH", 0, 0, 10)  # struct nfgenmsg with NFNL_SUBSYS_NFTABLES


class NftablesSocket(NetlinkSocket):
    """A socket that stays in the network namespace that the calling thread was in when it was opened.

    Not thread-safe.
    """

    __slots__ = ()

    PROTOCOL = _NETLINK_NETFILTER

    def commit(self, requests: Sequence[NetlinkRequest]) -> None:
        """Executes all requests as one transaction; raises the first error as KernelError, after which none holds."""
        if not requests:
            return
        begin = NetlinkRequest(_BATCH_BEGIN, 0, _BATCH, "begin a transaction")
        # Errors are answered in any case. The acknowledgement of the end is so only since Linux 6.10.
        *others, last = requests
        acknowledged = last._replace(flags=last.flags | message.ACKNOWLEDGE)
        end = NetlinkRequest(_BATCH_END, 0, _BATCH, "end a transaction")
        errors = self._execute_transaction([begin, *others, acknowledged, end])
        if errors:
            raise errors[min(errors)]
