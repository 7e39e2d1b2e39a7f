"""A NetworkAttachmentDefinition: what network it defines, or that it is another plugin's.

Whose it is says `spec.config`; what the network is say the annotations `opencontrail.org/*`, and CNI's own keys `dns`,
`mtu` and `routes` of the configuration. An author hears of everything that is wrong at once.
"""

from collections.abc import Mapping

from manager.parsing.errors import BadValueError, NadError
from manager.parsing.nad_network import parse_nad_network
from manager.parsing.nad_settings import parse_nad_settings
from manager.parsing.netconf import parse_netconf
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.parsing.quoting import quoted
from manager.parsing.validation import ValidationErrors
from manager.source import Nad

SNAT_KEY = "opencontrail.org/ip_fabric_snat"
FORWARDING_KEY = "opencontrail.org/ip_fabric_forwarding"

_FLAGS = {"true": True, "false": False}


def parse_nad(nad: Nad, *, default_mtu: int) -> NetworkDefinition | ForeignDefinition:
    """What the NAD defines. `default_mtu`: what its network has if it states none.

    Without `spec.config` a NAD names a file on the node's disk, which is foreign. Raises NadError with every problem.
    """
    if nad.config is None or not nad.config.strip():
        return ForeignDefinition(config_name=nad.name, plugin="")
    try:
        config = parse_netconf(nad.config)
    except BadValueError as error:
        raise NadError(f"spec.config: {error}") from error
    if config.own is None:
        return ForeignDefinition(config_name=config.name or nad.name, plugin=config.first_plugin)
    return _read_own(nad, config.name or nad.name, config.own, default_mtu)


def _read_own(nad: Nad, config_name: str, own: Mapping[str, object], default_mtu: int) -> NetworkDefinition:
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
        ip_fabric_snat=_read_flag(errors, nad.annotations, SNAT_KEY),
        ip_fabric_forwarding=_read_flag(errors, nad.annotations, FORWARDING_KEY),
    )
    if errors.problems:
        raise NadError(*errors.problems)
    return definition


def _read_flag(errors: ValidationErrors, annotations: Mapping[str, str], key: str) -> bool:
    text = annotations.get(key, "false")
    flag = _FLAGS.get(text.strip().lower())
    if flag is None:
        errors.add(key, f"{quoted(text)} is neither true nor false")
    return bool(flag)
