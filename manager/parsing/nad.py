"""Parser of NetworkAttachmentDefinitions: the network that a NAD defines, or the plugin that it belongs to.

`spec.config` names the plugin. The annotations `opencontrail.org/*` and CNI's own keys `dns`, `mtu` and `routes` in
`spec.config` define the network. All errors of a NAD are reported at once.
"""

from collections.abc import Mapping

from contrail_config.objects import ForwardingMode
from manager.parsing.errors import BadValueError, NadError
from manager.parsing.flags import parse_flag
from manager.parsing.nad_network import parse_nad_network
from manager.parsing.nad_settings import parse_nad_settings
from manager.parsing.netconf import parse_netconf
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.parsing.quoting import quoted
from manager.parsing.validation import ValidationErrors
from manager.source import Nad

SNAT_KEY = "opencontrail.org/ip_fabric_snat"
FORWARDING_KEY = "opencontrail.org/ip_fabric_forwarding"
FORWARDING_MODE_KEY = "opencontrail.org/forwarding-mode"


def parse_nad(nad: Nad, *, default_mtu: int | None) -> NetworkDefinition | ForeignDefinition:
    """Returns the definition. `default_mtu` is the MTU of a network that sets none, None if it is measured.

    A NAD without `spec.config` names a file on the node's disk, so it is foreign. Raises NadError with all problems.
    """
    if nad.config is None or not nad.config.strip():
        return ForeignDefinition(config_name=nad.name, plugin="")
    try:
        config = parse_netconf(nad.config)
    except BadValueError as error:
        raise NadError(f"spec.config: {error}") from error
    # Annotations of foreign NADs are not parsed: other plugins may use the same keys.
    if config.own is None:
        return ForeignDefinition(config_name=config.name or nad.name, plugin=config.first_plugin)
    return _parse_own(nad, config.name or nad.name, config.own, default_mtu)


def _parse_own(nad: Nad, config_name: str, own: Mapping[str, object], default_mtu: int | None) -> NetworkDefinition:
    # Everything is parsed before the errors are raised, so that one event lists them all.
    errors = ValidationErrors()
    subnets, reference = parse_nad_network(errors, nad.annotations)
    settings = parse_nad_settings(errors, own, nad=nad.key, subnets=subnets, default_mtu=default_mtu)
    definition = NetworkDefinition(
        config_name=config_name,
        subnets=subnets,
        reference=reference,
        dns=settings.dns,
        mtu=settings.mtu,
        routes=settings.routes,
        ip_fabric_snat=_parse_flag(errors, nad.annotations, SNAT_KEY),
        ip_fabric_forwarding=_parse_flag(errors, nad.annotations, FORWARDING_KEY),
        forwarding_mode=_parse_forwarding_mode(errors, nad.annotations),
    )
    if errors.problems:
        raise NadError(*errors.problems)
    return definition


def _parse_forwarding_mode(errors: ValidationErrors, annotations: Mapping[str, str]) -> ForwardingMode | None:
    text = annotations.get(FORWARDING_MODE_KEY)
    if text is None:
        return None
    try:
        return ForwardingMode(text.strip().lower())
    except ValueError:
        errors.add(FORWARDING_MODE_KEY, f"{quoted(text)} is neither {' nor '.join(ForwardingMode)}")
        return None


def _parse_flag(errors: ValidationErrors, annotations: Mapping[str, str], key: str) -> bool:
    return bool(errors.parse(key, parse_flag, annotations.get(key, "false")))
