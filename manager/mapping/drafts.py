"""The first half of the mapping: the ordered list of interfaces that a pod asks for, before they have addresses."""

from collections.abc import Sequence

import msgspec

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration
from manager.mapping.catalogue import Catalogue, ServedNad
from manager.mapping.default_gateway import choose_default_gateways
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import PodRefusedError
from manager.mapping.interface_names import attachment_names, refuse_taken_names
from manager.mapping.overlap import overlaps
from manager.mapping.primary import draft_primary
from manager.mapping.requests import refuse_impossible
from manager.mapping.selections import check_selections, draft_selection, find_nads
from manager.parsing.errors import AnnotationError
from manager.parsing.networks import NETWORKS_KEY, parse_networks
from manager.parsing.selection import NetworkSelection
from manager.reasons import Reason
from manager.source import Pod


class Notice(msgspec.Struct, frozen=True):
    """A warning about a pod that is served all the same."""

    reason: Reason
    message: str


class PodDraft(msgspec.Struct, frozen=True):
    """All interfaces of a pod, index 0 first, and what its owner should know."""

    interfaces: tuple[InterfaceDraft, ...]
    notices: tuple[Notice, ...] = ()


def draft_interfaces(
    pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration, unchosen: FqName | None = None
) -> PodDraft:
    """Returns what the pod asks for. Raises PodRefusedError and PodWaitsError.

    `unchosen`: the network of index 0 of a pod that chooses none, whatever its namespace and the cluster have by now.
    """
    attachments, foreign = _draft_attachments(pod, catalogue=catalogue, configuration=configuration)
    primary = draft_primary(pod, catalogue=catalogue, configuration=configuration, unchosen=unchosen)
    choice = choose_default_gateways(pod, [primary, *attachments], foreign=foreign)
    refuse_impossible(pod, choice.drafts)
    return PodDraft(tuple(choice.drafts), _notices(choice.drafts, conflict=choice.conflict))


def _draft_attachments(
    pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration
) -> tuple[list[InterfaceDraft], NetworkSelection | None]:
    """Index 1 and on: one for each reference to a NAD of ours, in the order of the references.

    Besides, the reference to another plugin's that carries `default-route`, if one does.
    """
    try:
        selections = parse_networks(pod.annotations.get(NETWORKS_KEY, ""), namespace=pod.namespace, defer_unserved=True)
    except AnnotationError as error:
        raise PodRefusedError(Reason.ANNOTATION_INVALID, str(error)) from error
    check_selections(selections, pod=pod, configuration=configuration, key=NETWORKS_KEY)
    meta_plugin = configuration.meta_plugin
    refuse_taken_names(selections, meta_plugin, namespace=pod.namespace)
    nads = find_nads(selections, catalogue, configuration)
    names = attachment_names(selections, default_networks=meta_plugin.default_networks_of(pod.namespace))
    drafts: list[InterfaceDraft] = []
    foreign = None
    for selection, nad, name in zip(selections, nads, names, strict=True):
        if isinstance(nad, ServedNad):
            drafts.append(draft_selection(selection, nad, catalogue=catalogue, key=NETWORKS_KEY, attachment=name))
        elif selection.default_route is not None:
            foreign = selection
    return drafts, foreign


def _notices(drafts: Sequence[InterfaceDraft], *, conflict: str | None) -> tuple[Notice, ...]:
    notices = [] if conflict is None else [Notice(Reason.DEFAULT_GATEWAY_CONFLICT, conflict)]
    if found := overlaps(draft.network for draft in drafts):
        notices.append(Notice(Reason.OVERLAPPING_NETWORKS, f"networks overlap: {'; '.join(found)}"))
    return tuple(notices)
