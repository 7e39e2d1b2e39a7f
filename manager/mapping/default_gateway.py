"""Where a pod's default routes go, by request; at most one interface for each family.

Two annotations can ask: `opencontrail.org/default-gw` names an interface, which takes the default routes of all
families in which it has a gateway; the standard's `default-route` names the gateways themselves, of which those within
the interface's network are served, and an empty list says that the pod has no default route at all, which is told on
index 0. Where they contradict each other, `default-gw` holds and an event tells: it is the more deliberate one, since
it exists for nothing else.

Under a meta plugin, an attachment of another plugin may carry `default-route` too. Then none of ours has one that
nobody asked for, in either family: as Multus has it, which leaves no default route but those that are asked for.

What was asked for is `true` on an interface that takes the default routes of all families that the pod has gateways
for, else it is that family. Families that nobody asked for fall to the lowest index, which whoever makes the interfaces
sees to.
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
    """The drafts with their `default_gw`, and in what the annotations contradict each other, if they do."""

    specs: Sequence[InterfaceSpec]
    conflict: str | None


def choose_default_gateways(
    pod: Pod, specs: Sequence[InterfaceSpec], *, foreign: NetworkSelection | None = None
) -> GatewayChoice:
    """Returns the choice; `foreign` is the attachment of another plugin that carries `default-route`, if one does.

    Raises PodRefusedError for a request that cannot be met, PodWaitsError if the networks cannot meet it as they are.
    """
    holder = _asked_by_routes(pod, specs)
    nowhere = foreign is not None or any(spec.default_route == () for spec in specs)
    conflict = None
    if wanted := pod.annotations.get(DEFAULT_GATEWAY_KEY, "").strip():
        index = _find(wanted, pod, specs)
        families = _gateway_families(specs[index])
        if nowhere or any(holder.get(family, index) != index for family in families):
            other = _asking(specs, foreign)
            conflict = f"{DEFAULT_GATEWAY_KEY}: {quoted(wanted)} holds, the default-route of {other} does not"
        holder |= dict.fromkeys(families, index)
    if not holder and not nowhere:
        return GatewayChoice(specs, None)
    return GatewayChoice(_with_answers(specs, holder, foreign=foreign), conflict)


def _asked_by_routes(pod: Pod, specs: Sequence[InterfaceSpec]) -> dict[int, int]:
    """The index that takes each family by `default-route`."""
    holder: dict[int, int] = {}
    for index, spec in enumerate(specs):
        for gateway in spec.default_route or ():
            if problem := gateway_problem(spec.network, gateway):
                message = f"default-route: {gateway} cannot be the gateway of {spec.nad}: {problem}"
                raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
            if gateway in spec.requested_addresses:
                raise _invalid(f"default-route: {gateway} is asked for as an address of the same interface")
            if holder.setdefault(family_of(gateway), index) != index:
                raise _invalid(f"default-route: {gateway} is one too many, index {holder[family_of(gateway)]} has one")
    return holder


def _find(wanted: str, pod: Pod, specs: Sequence[InterfaceSpec]) -> int:
    """The first interface that the value fits as interface name, `eth<i>`, `net<k>`, `ns/name` or network name."""
    ways: list[list[str | None]] = [
        [spec.interface for spec in specs],
        [interface_name(index, spec.interface) for index, spec in enumerate(specs)],
        [spec.attachment for spec in specs],
        [spec.nad for spec in specs],
        [_network_label(index, spec) for index, spec in enumerate(specs)],
        [spec.network.fq_name[2] for spec in specs],
    ]
    for names in ways:
        if wanted in names:
            spec = specs[index := names.index(wanted)]
            if _gateway_families(spec):
                return index
            message = f"{DEFAULT_GATEWAY_KEY}: network {spec.network.name} of {quoted(wanted)} has no gateway"
            raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
    known = ", ".join(dict.fromkeys(name for names in ways[:4] for name in names if name is not None))
    problem = f"{quoted(wanted)} is no interface and no network of the pod, which has {known}"
    raise _invalid(f"{DEFAULT_GATEWAY_KEY}: {problem}")


def _network_label(index: int, spec: InterfaceSpec) -> str | None:
    """What the annotation `network` of the interface says: the bare NAD name, `default` for index 0."""
    return "default" if index == 0 else spec.nad and spec.nad.rpartition("/")[2]


def _gateway_families(spec: InterfaceSpec) -> frozenset[int]:
    return gateway_families(spec.network) | {family_of(gateway) for gateway in spec.default_route or ()}


def _with_answers(
    specs: Sequence[InterfaceSpec], holder: Mapping[int, int], *, foreign: NetworkSelection | None
) -> list[InterfaceSpec]:
    of_pod = set().union(*map(_gateway_families, specs))
    answered = []
    for index, spec in enumerate(specs):
        families = {family for family, taker in holder.items() if taker == index}
        answer: DefaultGateway | None = None
        if families:
            answer = DefaultGateway.BOTH if families == of_pod else _ONE_FAMILY[min(families)]
        elif spec.default_route == () or (index == 0 and (foreign is not None or not holder)):
            answer = DefaultGateway.NONE
        answered.append(msgspec.structs.replace(spec, default_gw=answer))
    return answered


def _asking(specs: Sequence[InterfaceSpec], foreign: NetworkSelection | None) -> str:
    ours = [str(spec.nad) for spec in specs if spec.default_route is not None]
    return " and ".join([*ours, foreign.key] if foreign else ours)


def _invalid(message: str) -> PodRefusedError:
    return PodRefusedError(Reason.ANNOTATION_INVALID, message)
