"""IPv4 settings of an interface that shares a subnet with another one of its sandbox: set by ADD, compared by CHECK.

The kernel reports them with the link, so reading them takes no request of its own.
"""

from __future__ import annotations

import struct

from cni_contrail.link.links import OWN_ADDRESSES_ONLY, packed_inet_settings

_SETTING = struct.Struct("=I")
_NAMES = {8: "rp_filter", 18: "arp_announce", 19: "arp_ignore"}  # IPV4_DEVCONF_..., as in sysctls


def arp_setting_differences(name: str, link: bytes) -> list[str]:
    """Returns one sentence for each setting that `link`, an answer to `links.get`, has with another value than ADD's.

    A kernel without IPv4 settings for the link reports none, and has none of its addresses either.
    """
    packed = packed_inet_settings(link)
    found = []
    for setting, wanted in OWN_ADDRESSES_ONLY.items():
        offset = (setting - 1) * _SETTING.size  # the kernel counts from 1
        if len(packed) < offset + _SETTING.size:
            continue
        (value,) = _SETTING.unpack_from(packed, offset)
        if value != wanted:
            found.append(f"{name} has {_NAMES[setting]} {value} instead of {wanted}.")
    return found
