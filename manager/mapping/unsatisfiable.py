"""Requests that the networks as they are cannot meet: the pod waits, for they may be made anew so that they can.

What becomes of a pod is not to depend on when a manager saw it: one that starts later finds the networks as they are
then. So only what cannot be, whatever the networks are, is refused.
"""

from collections.abc import Sequence

from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.mapping.interface_spec import InterfaceSpec
from manager.reasons import Reason
from manager.source import Pod


def unsatisfiable(reason: Reason, message: str, *specs: InterfaceSpec, pod: Pod) -> PodWaitsError:
    """Returns the error of a pod whose drafts have networks that do not fit.

    It waits for their NADs and the networks; and for its namespace, which may choose the network of index 0: so what it
    waits for is never what it has already, and one that is served hears that it asks for what cannot be.
    """
    nads = [nad_dependency(spec.nad) for spec in specs if spec.nad is not None]
    networks = [network_dependency(spec.network.fq_name) for spec in specs]
    return PodWaitsError(reason, message, *dict.fromkeys([*nads, *networks, namespace_dependency(pod.namespace)]))


def conflicting(reason: Reason, message: str, specs: Sequence[InterfaceSpec], *, pod: Pod) -> MappingError:
    """Returns the error of a pod whose drafts cannot be in one network: what names one NAD always is."""
    if len({spec.nad for spec in specs}) == 1:
        return PodRefusedError(reason, message)
    return unsatisfiable(reason, message, *specs, pod=pod)
