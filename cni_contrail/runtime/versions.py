"""The versions of the CNI specification that the runtime speaks, and what each brought to runtimes.

A table of its own beside that of our plugin: a runtime also runs the plugins of others, newer and older ones.
"""

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
CURRENT = SUPPORTED[-1]

UNSTATED = "0.1.0"
"""What a configuration or a result without `cniVersion` has."""

CHAINS_SINCE = "0.3.0"
"""Plugins of a chain are given the result of the plugin before them; results have lists."""

CHECK_SINCE = "0.4.0"
"""There is a CHECK, and DEL is given the result of the ADD too."""

UNVERSIONED_IPS_SINCE = "1.0.0"
"""Entries of `ips` no longer say whether they are IPv4 or IPv6."""

STATUS_AND_GC_SINCE = "1.1.0"
"""There are STATUS and GC, which are of a network and of no attachment."""


def at_least(version: str, floor: str) -> bool:
    """Tells whether one supported version is another one or newer."""
    return SUPPORTED.index(version) >= SUPPORTED.index(floor)
