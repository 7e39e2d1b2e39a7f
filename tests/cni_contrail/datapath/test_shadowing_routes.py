"""Routes of other programs in a network's namespace: which take precedence over what the network needs."""

import ipaddress
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.policy_rules import DEFAULTS, PolicyRule, parse_default, rule_requests
from cni_contrail.datapath.shadowing_routes import ForeignRoute, shadowing
from cni_contrail.link.message import attribute, number

_HEADER = struct.Struct("=BBBBBBBBI")
_LOOK_UP_TABLE, _BLACKHOLE = 1, 6
NEWRULE, DELRULE = 32, 33


@pytest.mark.parametrize(
    ("route", "metric", "needed", "is_shadowing"),
    [
        ("10.7.0.2/32", 9, "10.7.0.0/24", True),
        ("10.7.0.0/25", 9, "10.7.0.0/24", True),
        ("10.7.0.0/24", 0, "10.7.0.0/24", True),
        ("10.7.0.0/24", 9, "10.7.0.0/24", False),
        ("10.0.0.0/8", 0, "10.7.0.0/24", False),
        ("10.8.0.2/32", 0, "10.7.0.0/24", False),
        ("10.8.0.2/32", 0, "0.0.0.0/0", True),
        ("10.8.0.2/32", 0, "::/0", False),
        ("fd07::/64", 1024, "fd07::/64", True),
        ("fd07::/64", 1025, "fd07::/64", False),
    ],
)
def test_a_more_specific_route_takes_precedence_and_an_equal_one_by_its_metric(
    route: str, metric: int, needed: str, *, is_shadowing: bool
) -> None:
    foreign = ForeignRoute(ipaddress.ip_network(route), metric, b"")
    assert shadowing([foreign], [ipaddress.ip_network(needed)]) == ([foreign] if is_shadowing else [])


def body_of(rule: PolicyRule, selectors: bytes = b"", *, action: int = _LOOK_UP_TABLE) -> bytes:
    """A rule as the kernel reports it."""
    header = _HEADER.pack(rule.family, 0, 0, 0, rule.table, 0, 0, action, 1 if rule.priority == 0 else 0)
    priority = number(6, rule.priority) if rule.priority else b""
    return header + priority + number(15, rule.table) + number(14, 0xFFFFFFFF) + selectors


permanent = frozenset(rule for rule in DEFAULTS if rule.priority == 0)
others = some.sampled_from(
    [
        body_of(PolicyRule(socket.AF_INET, 5, 77)),
        body_of(PolicyRule(socket.AF_INET6, 32766, 254), attribute(3, b"tap2\0")),
        body_of(PolicyRule(socket.AF_INET, 32765, 0), action=_BLACKHOLE),
    ]
)


@given(defaults=some.frozensets(some.sampled_from(sorted(DEFAULTS))), foreign=some.lists(others, unique=True))
def test_any_rules_become_those_that_a_namespace_has_at_first(
    defaults: frozenset[PolicyRule], foreign: list[bytes]
) -> None:
    found = [body_of(rule) for rule in defaults | permanent] + foreign
    requests = list(rule_requests(found))
    added = {parse_default(each.body) for each in requests if each.kind == NEWRULE}
    assert added == DEFAULTS - defaults - permanent
    removed = [each.body for each in requests if each.kind == DELRULE]
    assert sorted(removed) == sorted(foreign)
    kinds = [each.kind for each in requests]
    assert kinds == sorted(kinds)  # what was there at first is there before anything goes


def test_a_namespace_that_is_as_at_first_has_no_request() -> None:
    assert list(rule_requests([body_of(rule) for rule in DEFAULTS])) == []
    ipv4 = [body_of(rule) for rule in DEFAULTS if rule.family == socket.AF_INET]
    assert list(rule_requests(ipv4)) == []


def test_what_a_later_kernel_says_of_every_rule_does_not_make_the_first_ones_foreign() -> None:
    unknown = number(99, 1)
    assert list(rule_requests([body_of(rule, unknown) for rule in DEFAULTS])) == []
