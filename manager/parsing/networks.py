"""The annotation `k8s.v1.cni.cncf.io/networks`: which networks a pod wants besides the pod network, in which order.

Read as Multus reads it, since under a meta plugin both must count the same attachments: JSON if any of `[`, `{` and
`"` occurs, else a comma list of `[namespace/]name[@interface]`. Unlike upstream's kube-manager, which drops what it
does not understand, everything that cannot be had is an error: a pod with fewer interfaces than asked for helps nobody.

Not judged here: whether the networks are there, and names that other attachments get by themselves (`eth1`, `net1`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from manager.parsing.element import parse_selection
from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.json_text import json_list, parse_json
from manager.parsing.limits import MAX_NETWORKS, check_count
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.quoting import quoted

NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"


def parse_networks(text: str, *, namespace: str, defer_unserved: bool = False) -> tuple[NetworkSelection, ...]:
    """The annotation's elements in their order; none if it is blank. `namespace` is the pod's.

    `defer_unserved`: leaves it to the caller to refuse what is `unserved`, once it is known whose networks these are;
    without it all are taken for ours. Raises AnnotationError, which names element, key and value.
    """
    elements = _elements(text)
    selections = tuple(_read(element, position, namespace) for position, element in enumerate(elements, 1))
    _refuse_shared_names(selections)
    _refuse_second_default_route(selections)
    if not defer_unserved:
        _refuse_unserved(selections)
    return selections


def _elements(text: str) -> Sequence[Any]:
    if not text.strip():
        return ()
    is_json = any(mark in text for mark in '[{"')
    try:
        elements = json_list(parse_json(text)) if is_json else text.split(",")
        check_count(elements, "networks", most=MAX_NETWORKS)
    except BadValueError as error:
        raise AnnotationError(f"{NETWORKS_KEY}: {error}") from error
    return elements if is_json else [_short_form(item.strip(), position) for position, item in enumerate(elements, 1)]


def _short_form(item: str, position: int) -> Mapping[str, Any]:
    if not item:
        raise _error(position, "is empty: a comma too many?")
    if item.count("/") > 1 or item.count("@") > 1:
        raise _error(position, f"{quoted(item)} is not of the form [namespace/]name[@interface]")
    network, _, interface = item.partition("@")
    namespace, _, name = network.rpartition("/")
    return {"namespace": namespace.strip(), "name": name.strip(), "interface": interface.strip()}


def _read(element: Any, position: int, namespace: str) -> NetworkSelection:
    try:
        return parse_selection(element, namespace=namespace)
    except BadValueError as error:
        raise _error(position, str(error)) from error


def _refuse_shared_names(selections: Sequence[NetworkSelection]) -> None:
    first: dict[str, int] = {}
    for position, selection in enumerate(selections, 1):
        name = selection.interface
        if name is not None and first.setdefault(name, position) != position:
            raise _error(position, f"interface: {quoted(name)} is asked for by element {first[name]} too")


def _refuse_second_default_route(selections: Sequence[NetworkSelection]) -> None:
    """The standard allows the key in one element only (v1.3, 4.1)."""
    carriers = [position for position, selection in enumerate(selections, 1) if selection.default_route is not None]
    if len(carriers) > 1:
        asked = quoted(list(selections[carriers[1] - 1].default_route or ()))
        raise _error(carriers[1], f"default-route: {asked} is one too many, element {carriers[0]} carries the key too")


def _refuse_unserved(selections: Sequence[NetworkSelection]) -> None:
    for position, selection in enumerate(selections, 1):
        if selection.unserved:
            raise _error(position, selection.unserved[0])


def _error(position: int, problem: str) -> AnnotationError:
    return AnnotationError(f"{NETWORKS_KEY}, element {position}: {problem}")
