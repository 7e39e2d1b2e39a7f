"""Label and field selectors: equality, sets and existence of labels; equality of fields."""

import re
from collections.abc import Callable
from typing import Any

from tests.support.fake_apiserver.status_errors import bad_request

Object = dict[str, Any]
Matches = Callable[[Object], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<not>notin|in)\s+\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>\S*)$")
_BETWEEN = re.compile(r",(?![^(]*\))")


def selector(labels: str, fields: str) -> Matches:
    """Returns a predicate for objects that match both selectors."""
    terms = [*map(_label_term, _terms(labels)), *map(_field_term, _terms(fields))]
    return lambda candidate: all(term(candidate) for term in terms)


def _terms(text: str) -> list[str]:
    return [term.strip() for term in _BETWEEN.split(text) if term.strip()]


def _label_term(term: str) -> Matches:
    if among := _SET.match(term):
        key, wanted = among["key"], among["not"] == "in"
        values = {value.strip() for value in among["values"].split(",")}
        return lambda candidate: (_labels(candidate).get(key) in values) is wanted
    if equal := _EQUAL.match(term):
        name, operator, value = equal.group("key", "op", "value")
        return lambda candidate: (_labels(candidate).get(name) == value) is (operator != "!=")
    if term.startswith("!"):
        return lambda candidate: term[1:] not in _labels(candidate)
    return lambda candidate: term in _labels(candidate)


def _field_term(term: str) -> Matches:
    match = _EQUAL.match(term)
    if match is None:
        raise bad_request(f"invalid field selector: {term}")
    return lambda candidate: (_field(candidate, match["key"]) == match["value"]) is (match["op"] != "!=")


def _labels(candidate: Object) -> dict[str, str]:
    labels: dict[str, str] = candidate["metadata"].get("labels") or {}
    return labels


def _field(candidate: Object, path: str) -> str:
    value: Any = candidate
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    return str(value)
