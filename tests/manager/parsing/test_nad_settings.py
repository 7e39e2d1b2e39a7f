"""Flags in annotations; `dns`, `mtu` and `routes` in `spec.config`, and keys that are rejected there."""

import json
from typing import Any

import pytest

from contrail_config.objects import ForwardingMode, Route
from tests.manager.parsing.conftest import Define, ProblemsOf


def config(**keys: Any) -> str:
    return json.dumps({"type": "contrail-k8s-cni"} | keys)


def make_conflist(own: dict[str, Any], **keys: Any) -> str:
    plugins = [{"type": "tuning", "mtu": 9}, {"type": "contrail-k8s-cni"} | own]
    return json.dumps({"name": "blue", "plugins": plugins} | keys)


V4 = {"cidr": "10.1.1.0/24"}
V6 = {"cidr": "fd00::/64"}


@pytest.mark.parametrize("text", ["true", "True", " TRUE "])
def test_flags_are_true_in_any_case(text: str, define: Define) -> None:
    definition = define(**V4, ip_fabric_snat=text, ip_fabric_forwarding="False")
    assert definition.ip_fabric_snat
    assert not definition.ip_fabric_forwarding


def test_flags_are_false_by_default(define: Define) -> None:
    definition = define(**V4)
    assert not definition.ip_fabric_snat
    assert not definition.ip_fabric_forwarding


@pytest.mark.parametrize("key", ["ip_fabric_snat", "ip_fabric_forwarding"])
@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_any_other_flag_is_rejected(key: str, text: str, problems_of: ProblemsOf) -> None:
    assert problems_of(**V4, **{key: text}) == (f"opencontrail.org/{key}: {text!r} is neither true nor false",)


@pytest.mark.parametrize("text", ["l3", "L3", " l3 "])
def test_the_forwarding_mode_is_parsed_in_any_case(text: str, define: Define) -> None:
    assert define(**V4, **{"forwarding-mode": text}).forwarding_mode is ForwardingMode.L3


def test_the_forwarding_mode_is_left_to_the_manager_by_default(define: Define) -> None:
    assert define(**V4).forwarding_mode is None
    assert define(**V4, **{"forwarding-mode": "l2_l3"}).forwarding_mode is ForwardingMode.L2_L3


@pytest.mark.parametrize("text", ["l2", "", "true"])
def test_any_other_forwarding_mode_is_rejected(text: str, problems_of: ProblemsOf) -> None:
    problem = f"opencontrail.org/forwarding-mode: {text!r} is neither l2_l3 nor l3"
    assert problems_of(**V4, **{"forwarding-mode": text}) == (problem,)


def test_settings_are_parsed_from_spec_config(define: Define) -> None:
    routes = [{"dst": "192.168.0.0/16", "gw": "10.1.1.9"}]
    definition = define(config(dns={"nameservers": ["10.1.1.53"]}, mtu=9000, routes=routes), **V4)
    assert definition.dns == ("10.1.1.53",)
    assert definition.mtu == 9000
    assert definition.routes == (Route(dst="192.168.0.0/16", gw="10.1.1.9"),)


def test_in_a_list_the_plugins_own_object_takes_precedence(define: Define) -> None:
    definition = define(make_conflist({"mtu": 9000}, mtu=1400, dns={"nameservers": ["fd00::53"]}), **V4)
    assert definition.mtu == 9000
    assert definition.dns == ("fd00::53",)
    assert definition.config_name == "blue"


def test_absent_settings_have_their_defaults(define: Define) -> None:
    definition = define(config(dns=None, mtu=None, routes=None, ipam={}, ipMasq=False), **V4)
    assert (definition.dns, definition.mtu, definition.routes) == ((), None, ())


def test_the_mtu_may_be_in_the_section_contrail(define: Define) -> None:
    assert define(config(contrail={"mtu": 1400}), **V4).mtu == 1400


@pytest.mark.parametrize("mtu", [67, 65536, "1500", 1500.0, True])
def test_an_invalid_mtu_is_rejected(mtu: Any, problems_of: ProblemsOf) -> None:
    assert problems_of(config(mtu=mtu), **V4) == (
        f"spec.config, mtu: {mtu!r} is not a valid MTU: use a number from 68 to 65535",
    )


def test_ipv6_needs_an_mtu_of_at_least_1280(define: Define, problems_of: ProblemsOf) -> None:
    assert define(config(mtu=1280), **V6).mtu == 1280
    assert define(config(mtu=1279), **V4).mtu == 1279
    message = "spec.config, mtu: 1279 is below 1280, the minimum MTU of IPv6"
    assert problems_of(config(mtu=1279), **V6) == (message,)
    assert problems_of(default_mtu=1279, **V6) == (message,)


@pytest.mark.parametrize(
    ("dns", "reason"),
    [
        ({"nameservers": ["ns.example.org"]}, "'ns.example.org' is not an IP address"),
        ({"nameservers": "10.1.1.53"}, "'10.1.1.53' is not a JSON list"),
        (["10.1.1.53"], "['10.1.1.53'] is not a JSON object"),
    ],
)
def test_name_servers_must_be_addresses(dns: Any, reason: str, problems_of: ProblemsOf) -> None:
    assert problems_of(config(dns=dns), **V4) == (f"spec.config, dns: {reason}",)


def test_other_keys_of_dns_are_left_to_the_plugin(define: Define) -> None:
    assert define(config(dns={"search": ["example.org"], "nameservers": None}), **V4).dns == ()


@pytest.mark.parametrize(("key", "value"), [("ipam", {"type": "host-local"}), ("ipMasq", True)])
def test_addresses_cannot_be_requested_through_ipam(key: str, value: Any, problems_of: ProblemsOf) -> None:
    message = f"spec.config, {key}: {value!r} is not supported: addresses come only from the agent"
    assert problems_of(config(**{key: value}), **V4) == (message,)
    assert problems_of(make_conflist({key: value}), **V4) == (message,)


def test_the_section_contrail_must_not_name_another_nad(define: Define, problems_of: ProblemsOf) -> None:
    assert define(config(contrail={"nad": "shop/net-a"}), **V4) == define(**V4)
    assert problems_of(config(contrail={"nad": "shop/net-b"}), **V4) == (
        "spec.config, contrail.nad: 'shop/net-b' does not match this NAD, shop/net-a",
    )
    assert problems_of(config(contrail=5), **V4) == ("spec.config, contrail: 5 is not a JSON object",)


def test_all_problems_are_listed(problems_of: ProblemsOf) -> None:
    problems = problems_of(
        config(mtu=1, ipam={"type": "static"}, dns=[], routes=[{}]), cidr="10.1.1.5/24,x", ip_fabric_snat="maybe"
    )
    assert [problem.split(": ")[0] for problem in problems] == [
        "opencontrail.org/cidr",
        "opencontrail.org/cidr",
        "spec.config, ipam",
        "spec.config, dns",
        "spec.config, mtu",
        "spec.config, routes[0]",
        "opencontrail.org/ip_fabric_snat",
    ]
