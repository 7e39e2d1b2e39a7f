"""Requests that the networks as they are cannot meet: the pod waits, for they may be made anew so that they can.

What becomes of a pod is not to depend on when a manager saw it: one that starts later finds the networks as they are
then. So only what cannot be, whatever the networks are, is refused.
"""

from collections.abc import Sequence

from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.reasons import Reason
from manager.source import Pod


def unfit(reason: Reason, message: str, *drafts: InterfaceDraft, pod: Pod) -> PodWaitsError:
    """Returns the error of a pod whose drafts have networks that do not fit.

    It waits for their NADs and the networks; and for its namespace, which may choose the network of index 0: so what it
    waits for is never what it has already, and one that is served hears that it asks for what cannot be.
    """
    nads = [nad_dependency(draft.nad) for draft in drafts if draft.nad is not None]
    networks = [network_dependency(draft.network.fq_name) for draft in drafts]
    return PodWaitsError(reason, message, *dict.fromkeys([*nads, *networks, namespace_dependency(pod.namespace)]))


def clash(reason: Reason, message: str, drafts: Sequence[InterfaceDraft], *, pod: Pod) -> MappingError:
    """Returns the error of a pod whose drafts cannot be in one network: what names one NAD always is."""
    if len({draft.nad for draft in drafts}) == 1:
        return PodRefusedError(reason, message)
    return unfit(reason, message, *drafts, pod=pod)
