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
_CAPPED = 0x100  # NLM_F_CAPPED: the request is quoted without its body
_CODE = struct.Struct("=i")  # error number, negative; behind it the request is quoted
_QUOTED_LENGTH = struct.Struct("=I")
_QUOTED_HEADER = 16
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
    if answer.kind == message.DONE:
        return _CODE.size
    if answer.flags & _CAPPED:
        return _CODE.size + _QUOTED_HEADER
    (quoted,) = _QUOTED_LENGTH.unpack_from(answer.body, _CODE.size)
    return _CODE.size + message.padded(int(quoted))
