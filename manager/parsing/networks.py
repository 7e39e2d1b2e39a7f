"""Parser of the annotation `k8s.v1.cni.cncf.io/networks`: the networks of a pod besides the pod network, in order.

The syntax is that of Multus, since under a meta plugin both must count the same attachments: JSON if the text contains
`[`, `{` or `"`, else a comma-separated list of `[namespace/]name[@interface]`. Upstream's kube-manager drops elements
that it does not understand; here they are errors, since a pod with fewer interfaces than requested would fail later.

Not checked here: whether the networks exist, and conflicts with names that are assigned by default (`eth1`, `net1`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.json_text import json_list, parse_json
from manager.parsing.limits import MAX_NETWORKS, check_count
from manager.parsing.network_selection import NetworkSelection, parse_selection
from manager.parsing.quoting import quoted

NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"


def parse_networks(text: str, *, namespace: str, defer_unsupported: bool = False) -> tuple[NetworkSelection, ...]:
    """Returns the elements in order; none if the annotation is blank. `namespace` is the pod's.

    `defer_unsupported`: do not reject `unsupported` requests. The caller rejects them once it knows which networks are
    served by the Contrail plugin; another plugin may support them.
    Raises AnnotationError, which names element, key and value.
    """
    elements = _elements(text)
    selections = tuple(_parse(element, position, namespace) for position, element in enumerate(elements, 1))
    _reject_duplicate_names(selections)
    _reject_second_default_route(selections)
    if not defer_unsupported:
        _reject_unsupported(selections)
    return selections


def _elements(text: str) -> Sequence[Any]:
    if not text.strip():
        return ()
    # None of these characters can occur in the short form.
    is_json = any(mark in text for mark in '[{"')
    try:
        elements = json_list(parse_json(text)) if is_json else text.split(",")
        check_count(elements, "networks", limit=MAX_NETWORKS)
    except BadValueError as error:
        raise AnnotationError(f"{NETWORKS_KEY}: {error}") from error
    return elements if is_json else [_short_form(item.strip(), position) for position, item in enumerate(elements, 1)]


def _short_form(item: str, position: int) -> Mapping[str, Any]:
    if not item:
        raise _error(position, "is empty: remove the extra comma")
    if item.count("/") > 1 or item.count("@") > 1:
        raise _error(position, f"{quoted(item)} does not have the form [namespace/]name[@interface]")
    network, _, interface = item.partition("@")
    namespace, _, name = network.rpartition("/")
    return {"namespace": namespace.strip(), "name": name.strip(), "interface": interface.strip()}


def _parse(element: Any, position: int, namespace: str) -> NetworkSelection:
    try:
        return parse_selection(element, namespace=namespace)
    except BadValueError as error:
        raise _error(position, str(error)) from error


def _reject_duplicate_names(selections: Sequence[NetworkSelection]) -> None:
    # Default names are not known here: they depend on the meta plugin (mapping.interface_names).
    first: dict[str, int] = {}
    for position, selection in enumerate(selections, 1):
        name = selection.interface
        if name is not None and first.setdefault(name, position) != position:
            raise _error(position, f"interface: {quoted(name)} is already requested by element {first[name]}")


def _reject_second_default_route(selections: Sequence[NetworkSelection]) -> None:
    """The standard allows the key in one element only (v1.3, 4.1)."""
    carriers = [position for position, selection in enumerate(selections, 1) if selection.default_route is not None]
    if len(carriers) > 1:
        requested = quoted(list(selections[carriers[1] - 1].default_route or ()))
        problem = f"default-route: {requested}: element {carriers[0]} already has this key, only one element may"
        raise _error(carriers[1], problem)


def _reject_unsupported(selections: Sequence[NetworkSelection]) -> None:
    for position, selection in enumerate(selections, 1):
        if selection.unsupported:
            raise _error(position, selection.unsupported[0])


def _error(position: int, problem: str) -> AnnotationError:
    return AnnotationError(f"{NETWORKS_KEY}, element {position}: {problem}")
