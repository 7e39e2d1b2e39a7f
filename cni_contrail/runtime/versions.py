"""What each version of the CNI specification brought to runtimes."""

from cni_contrail.protocol.versions import SUPPORTED

PLANNED = ("1.1.0",)

UNSTATED = "0.1.0"
"""What a configuration without `cniVersion` has."""

CHAINS_SINCE = "0.3.0"
"""Plugins of a chain are given the result of the plugin before them."""

CHECK_SINCE = "0.4.0"
"""There is a CHECK, and DEL is given the result of the ADD too."""

UNVERSIONED_IPS_SINCE = "1.0.0"
"""Entries of `ips` no longer say whether they are IPv4 or IPv6."""


def at_least(version: str, floor: str) -> bool:
    """Tells whether one supported version is another one or newer."""
    return SUPPORTED.index(version) >= SUPPORTED.index(floor)
