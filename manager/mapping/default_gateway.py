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
from manager.mapping.addresses import gateway_families, unfit_gateway
from manager.mapping.annotations import DEFAULT_GATEWAY_KEY
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import PodRefusedError
from manager.mapping.unfit import unfit
from manager.parsing.quoting import shown
from manager.parsing.selection import NetworkSelection
from manager.reasons import Reason
from manager.source import Pod

_ONE_FAMILY = {4: DefaultGateway.IPV4, 6: DefaultGateway.IPV6}


class GatewayChoice(msgspec.Struct, frozen=True):
    """The drafts with their `default_gw`, and in what the annotations contradict each other, if they do."""

    drafts: Sequence[InterfaceDraft]
    conflict: str | None


def choose_default_gateways(
    pod: Pod, drafts: Sequence[InterfaceDraft], *, foreign: NetworkSelection | None = None
) -> GatewayChoice:
    """Returns the choice; `foreign` is the attachment of another plugin that carries `default-route`, if one does.

    Raises PodRefusedError for a request that cannot be met, PodWaitsError if the networks cannot meet it as they are.
    """
    holder = _asked_by_routes(pod, drafts)
    nowhere = foreign is not None or any(draft.default_route == () for draft in drafts)
    conflict = None
    if wanted := pod.annotations.get(DEFAULT_GATEWAY_KEY, "").strip():
        index = _find(wanted, pod, drafts)
        families = _gateway_families(drafts[index])
        if nowhere or any(holder.get(family, index) != index for family in families):
            other = _asking(drafts, foreign)
            conflict = f"{DEFAULT_GATEWAY_KEY}: {shown(wanted)} holds, the default-route of {other} does not"
        holder |= dict.fromkeys(families, index)
    if not holder and not nowhere:
        return GatewayChoice(drafts, None)
    return GatewayChoice(_with_answers(drafts, holder, foreign=foreign), conflict)


def _asked_by_routes(pod: Pod, drafts: Sequence[InterfaceDraft]) -> dict[int, int]:
    """The index that takes each family by `default-route`."""
    holder: dict[int, int] = {}
    for index, draft in enumerate(drafts):
        for gateway in draft.default_route or ():
            if problem := unfit_gateway(draft.network, gateway):
                message = f"default-route: {gateway} cannot be the gateway of {draft.nad}: {problem}"
                raise unfit(Reason.ANNOTATION_INVALID, message, draft, pod=pod)
            if gateway in draft.wishes:
                raise _invalid(f"default-route: {gateway} is asked for as an address of the same interface")
            if holder.setdefault(family_of(gateway), index) != index:
                raise _invalid(f"default-route: {gateway} is one too many, index {holder[family_of(gateway)]} has one")
    return holder


def _find(wanted: str, pod: Pod, drafts: Sequence[InterfaceDraft]) -> int:
    """The first interface that the value fits as interface name, `eth<i>`, `net<k>`, `ns/name` or network name."""
    ways: list[list[str | None]] = [
        [draft.interface for draft in drafts],
        [interface_name(index, draft.interface) for index, draft in enumerate(drafts)],
        [draft.attachment for draft in drafts],
        [draft.nad for draft in drafts],
        [_network_label(index, draft) for index, draft in enumerate(drafts)],
        [draft.network.fq_name[2] for draft in drafts],
    ]
    for names in ways:
        if wanted in names:
            draft = drafts[index := names.index(wanted)]
            if _gateway_families(draft):
                return index
            message = f"{DEFAULT_GATEWAY_KEY}: network {draft.network.name} of {shown(wanted)} has no gateway"
            raise unfit(Reason.ANNOTATION_INVALID, message, draft, pod=pod)
    known = ", ".join(dict.fromkeys(name for names in ways[:4] for name in names if name is not None))
    problem = f"{shown(wanted)} is no interface and no network of the pod, which has {known}"
    raise _invalid(f"{DEFAULT_GATEWAY_KEY}: {problem}")


def _network_label(index: int, draft: InterfaceDraft) -> str | None:
    """What the annotation `network` of the interface says: the bare NAD name, `default` for index 0."""
    return "default" if index == 0 else draft.nad and draft.nad.rpartition("/")[2]


def _gateway_families(draft: InterfaceDraft) -> frozenset[int]:
    return gateway_families(draft.network) | {family_of(gateway) for gateway in draft.default_route or ()}


def _with_answers(
    drafts: Sequence[InterfaceDraft], holder: Mapping[int, int], *, foreign: NetworkSelection | None
) -> list[InterfaceDraft]:
    of_pod = set().union(*map(_gateway_families, drafts))
    answered = []
    for index, draft in enumerate(drafts):
        families = {family for family, taker in holder.items() if taker == index}
        answer: DefaultGateway | None = None
        if families:
            answer = DefaultGateway.BOTH if families == of_pod else _ONE_FAMILY[min(families)]
        elif draft.default_route == () or (index == 0 and (foreign is not None or not holder)):
            answer = DefaultGateway.NONE
        answered.append(msgspec.structs.replace(draft, default_gw=answer))
    return answered


def _asking(drafts: Sequence[InterfaceDraft], foreign: NetworkSelection | None) -> str:
    ours = [str(draft.nad) for draft in drafts if draft.default_route is not None]
    return " and ".join([*ours, foreign.key] if foreign else ours)


def _invalid(message: str) -> PodRefusedError:
    return PodRefusedError(Reason.ANNOTATION_INVALID, message)
