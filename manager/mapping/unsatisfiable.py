"""Requests that the current networks cannot satisfy: the pod waits, since the networks may be recreated.

The result for a pod must not depend on when a manager saw it: a manager that starts later sees the networks of that
time. So a request is refused only if it is invalid whatever the networks are.
"""

from collections.abc import Sequence

from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.mapping.interface_spec import InterfaceSpec
from manager.reasons import Reason
from manager.source import Pod


def unsatisfiable(reason: Reason, message: str, *specs: InterfaceSpec, pod: Pod) -> PodWaitsError:
    """Returns the error of a pod whose request does not fit the networks of these specs.

    The pod waits for their NADs and networks, and for its namespace, which may choose the network of index 0. With the
    namespace among them, the dependencies are never only those that a served pod already has, so a served pod gets an
    event about the request.
    """
    nads = [nad_dependency(spec.nad) for spec in specs if spec.nad is not None]
    networks = [network_dependency(spec.network.fq_name) for spec in specs]
    return PodWaitsError(reason, message, *dict.fromkeys([*nads, *networks, namespace_dependency(pod.namespace)]))


def conflicting(reason: Reason, message: str, specs: Sequence[InterfaceSpec], *, pod: Pod) -> MappingError:
    """Returns the error of specs that conflict in one network; specs of one NAD always share its network."""
    # Specs of one NAD conflict in whatever network it refers to.
    if len({spec.nad for spec in specs}) == 1:
        return PodRefusedError(reason, message)
    return unsatisfiable(reason, message, *specs, pod=pod)
