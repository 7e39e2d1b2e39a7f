"""Versions of the CNI specification that the runtime supports, and what each added for runtimes.

Separate from the plugin's own table: a runtime also executes foreign plugins, newer and older ones.
"""

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
CURRENT = SUPPORTED[-1]

UNSTATED = "0.1.0"
"""Version of a configuration or result without `cniVersion`."""

CHAINS_SINCE = "0.3.0"
"""Each plugin of a chain receives the result of the previous one; results have lists."""

CHECK_SINCE = "0.4.0"
"""CHECK exists, and DEL receives the result of ADD too."""

UNVERSIONED_IPS_SINCE = "1.0.0"
"""Entries of `ips` no longer state their family."""

STATUS_AND_GC_SINCE = "1.1.0"
"""STATUS and GC exist; they apply to a network, not to an attachment."""


def at_least(version: str, floor: str) -> bool:
    """Returns whether a supported version is `floor` or newer."""
    return SUPPORTED.index(version) >= SUPPORTED.index(floor)
