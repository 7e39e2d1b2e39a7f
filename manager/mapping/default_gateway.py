"""Requests for default routes: which interface of a pod carries the default route of each family by request.

Two annotations can request it. `opencontrail.org/default-gw` names an interface, which carries the default routes of
all families in which it has a gateway. The standard's `default-route` lists gateways within the interface's network; an
empty list means that the pod has no default route at all, which is recorded on index 0. If the two conflict,
`default-gw` wins, since it has no other purpose, and a warning event is recorded.

Under a meta plugin, an attachment of another plugin may have `default-route` too. Then no Contrail interface has a
default route without a request, in either family: Multus removes all default routes that are not requested.

The result is `true` on an interface that carries the default routes of all families in which the pod has gateways, else
the one family. Families without a request are not decided here; see `contrail_config.default_routes`.
"""

from collections.abc import Mapping, Sequence

import msgspec

from contrail_config.addressing.notation import family_of
from contrail_config.objects import DefaultGateway, interface_name
from manager.mapping.annotations import DEFAULT_GATEWAY_KEY
from manager.mapping.errors import PodRefusedError
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.network_addressing import gateway_families, gateway_problem
from manager.mapping.unsatisfiable import unsatisfiable
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.quoting import quoted
from manager.reasons import Reason
from manager.source import Pod

_ONE_FAMILY = {4: DefaultGateway.IPV4, 6: DefaultGateway.IPV6}


class GatewayChoice(msgspec.Struct, frozen=True):
    """The specs with their `default_gw`; `conflict` describes a conflict between the annotations, if there is one."""

    specs: Sequence[InterfaceSpec]
    conflict: str | None


def choose_default_gateways(
    pod: Pod, specs: Sequence[InterfaceSpec], *, foreign: NetworkSelection | None = None
) -> GatewayChoice:
    """Returns the choice; `foreign` is the attachment of another plugin that has `default-route`, if any.

    Raises PodRefusedError for an invalid request, PodWaitsError if the current networks cannot satisfy it.
    """
    carrier = _requested_by_routes(pod, specs)
    without_default = foreign is not None or any(spec.default_route == () for spec in specs)
    conflict = None
    if requested := pod.annotations.get(DEFAULT_GATEWAY_KEY, "").strip():
        index = _find(requested, pod, specs)
        families = _gateway_families(specs[index])
        # A family without a request in `default-route` is no conflict.
        if without_default or any(carrier.get(family, index) != index for family in families):
            other = _default_route_owners(specs, foreign)
            conflict = f"{DEFAULT_GATEWAY_KEY}: {quoted(requested)} takes precedence over the default-route of {other}"
        carrier |= dict.fromkeys(families, index)
    if not carrier and not without_default:
        return GatewayChoice(specs, None)
    return GatewayChoice(_with_default_gw(specs, carrier, foreign=foreign), conflict)


def _requested_by_routes(pod: Pod, specs: Sequence[InterfaceSpec]) -> dict[int, int]:
    """Returns the index that requests each family by `default-route`."""
    carrier: dict[int, int] = {}
    for index, spec in enumerate(specs):
        for gateway in spec.default_route or ():
            if problem := gateway_problem(spec.network, gateway):
                message = f"default-route: {gateway} is not a valid gateway of {spec.nad}: {problem}"
                raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
            if gateway in spec.requested_addresses:
                raise _invalid(f"default-route: {gateway} is also requested as an address of the same interface")
            if carrier.setdefault(family_of(gateway), index) != index:
                other = carrier[family_of(gateway)]
                raise _invalid(f"default-route: {gateway}: index {other} already requests this family's default route")
    return carrier


def _find(requested: str, pod: Pod, specs: Sequence[InterfaceSpec]) -> int:
    """Returns the first index that matches as interface name, `eth<i>`, `net<k>`, `ns/name` or network name."""
    candidates: list[list[str | None]] = [
        [spec.interface for spec in specs],
        [interface_name(index, spec.interface) for index, spec in enumerate(specs)],
        [spec.attachment for spec in specs],
        [spec.nad for spec in specs],
        [_network_label(index, spec) for index, spec in enumerate(specs)],
        [spec.network.fq_name[2] for spec in specs],
    ]
    for names in candidates:
        if requested in names:
            spec = specs[index := names.index(requested)]
            if _gateway_families(spec):
                return index
            message = f"{DEFAULT_GATEWAY_KEY}: network {spec.network.name} of {quoted(requested)} has no gateway"
            raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
    # The hint omits network names, which mostly repeat the NADs.
    known = ", ".join(dict.fromkeys(name for names in candidates[:4] for name in names if name is not None))
    problem = f"{quoted(requested)} is neither an interface nor a network of the pod: use one of {known}"
    raise _invalid(f"{DEFAULT_GATEWAY_KEY}: {problem}")


def _network_label(index: int, spec: InterfaceSpec) -> str | None:
    """Returns the interface's annotation `network`: the NAD name without namespace, `default` for index 0."""
    return "default" if index == 0 else spec.nad and spec.nad.rpartition("/")[2]


def _gateway_families(spec: InterfaceSpec) -> frozenset[int]:
    return gateway_families(spec.network) | {family_of(gateway) for gateway in spec.default_route or ()}


def _with_default_gw(
    specs: Sequence[InterfaceSpec], carrier: Mapping[int, int], *, foreign: NetworkSelection | None
) -> list[InterfaceSpec]:
    of_pod = set().union(*map(_gateway_families, specs))
    result = []
    for index, spec in enumerate(specs):
        families = {family for family, by in carrier.items() if by == index}
        default_gw: DefaultGateway | None = None
        if families:
            default_gw = DefaultGateway.BOTH if families == of_pod else _ONE_FAMILY[min(families)]
        # On index 0, `none` means for the plugin: no default route without a request.
        elif spec.default_route == () or (index == 0 and (foreign is not None or not carrier)):
            default_gw = DefaultGateway.NONE
        result.append(msgspec.structs.replace(spec, default_gw=default_gw))
    return result


def _default_route_owners(specs: Sequence[InterfaceSpec], foreign: NetworkSelection | None) -> str:
    ours = [str(spec.nad) for spec in specs if spec.default_route is not None]
    return " and ".join([*ours, foreign.key] if foreign else ours)


def _invalid(message: str) -> PodRefusedError:
    return PodRefusedError(Reason.ANNOTATION_INVALID, message)
