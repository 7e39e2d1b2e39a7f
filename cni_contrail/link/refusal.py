"""Reads what the kernel says of a request: that it was carried out, or why not.

Source: netlink(7), "struct nlmsgerr" and NETLINK_EXT_ACK.
"""

from __future__ import annotations

import os
import struct

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.message import Message

_TLVS = 0x200  # NLM_F_ACK_TLVS: attributes follow
_CODE = struct.Struct("=i")  # error number, negative
_QUOTED = 16  # bytes of the request behind it: its header, and no more since we set NETLINK_CAP_ACK
_REASON = 1  # NLMSGERR_ATTR_MSG


def refusal(answer: Message, what: str) -> KernelError | None:
    """Returns the refusal in an NLMSG_ERROR or NLMSG_DONE; None if all went well. `what` was asked for."""
    (code,) = _CODE.unpack_from(answer.body)
    if code >= 0:
        return None
    reason = os.strerror(-code)
    explained = message.attributes(answer.body[_attributes_at(answer) :]).get(_REASON)
    if explained is not None:
        reason += " (" + explained.rstrip(b"\0").decode() + ")"
    return KernelError(what, -code, reason)


def _attributes_at(answer: Message) -> int:
    if not answer.flags & _TLVS:
        return len(answer.body)
    return _CODE.size + (_QUOTED if answer.kind == message.ERROR else 0)
