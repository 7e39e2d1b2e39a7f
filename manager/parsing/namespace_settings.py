"""Settings of a namespace: whether its pods have a pod network of their own, and the flags of that network."""

from collections.abc import Mapping

import msgspec

from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.flags import parse_flag
from manager.parsing.nad import FORWARDING_KEY, SNAT_KEY
from manager.parsing.network_reference import NETWORK_KEY

ISOLATION_KEY = "opencontrail.org/isolation"

NAMESPACE_KEYS = (NETWORK_KEY, ISOLATION_KEY, SNAT_KEY, FORWARDING_KEY)
"""The annotations of a namespace that count."""


class NamespaceSettings(msgspec.Struct, frozen=True):
    """`ip_fabric_snat` and `ip_fabric_forwarding` apply to the network of an isolated namespace only."""

    isolated: bool
    ip_fabric_snat: bool
    ip_fabric_forwarding: bool


def parse_namespace_settings(annotations: Mapping[str, str]) -> NamespaceSettings:
    """Returns the settings. Raises AnnotationError, which names the annotation.

    Flags of a network that does not exist are not read: a mistake in them has no effect, so it must not stop pods.
    """
    if not _flag(annotations, ISOLATION_KEY):
        return NamespaceSettings(isolated=False, ip_fabric_snat=False, ip_fabric_forwarding=False)
    return NamespaceSettings(
        isolated=True,
        ip_fabric_snat=_flag(annotations, SNAT_KEY),
        ip_fabric_forwarding=_flag(annotations, FORWARDING_KEY),
    )


def _flag(annotations: Mapping[str, str], key: str) -> bool:
    try:
        return parse_flag(annotations.get(key, "false"))
    except BadValueError as error:
        raise AnnotationError(f"{key}: {error}") from error
