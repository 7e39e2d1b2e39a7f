"""Lists above their limit are rejected before their items are parsed."""

import json
from typing import Any

import pytest

from manager.parsing.errors import AnnotationError, NadError
from manager.parsing.limits import MAX_EXCLUDED_CIDRS, MAX_LIST_ITEMS, MAX_NETWORKS
from manager.parsing.nad import parse_nad
from manager.parsing.networks import parse_networks
from tests.manager.parsing.conftest import Define, MakeNad, ProblemsOf

CIDR = "10.1.0.0/16"
WRONG = ["x"] * (MAX_LIST_ITEMS + 1)


def config(**keys: Any) -> str:
    return json.dumps({"type": "contrail-k8s-cni", **keys})


def addresses(number: int) -> list[str]:
    """No two are adjacent, so exclusions of them cannot be collapsed."""
    return [f"10.1.{i // 100 + 1}.{i % 100 * 2 + 1}" for i in range(number)]


class TestDefinitions:
    """Lists in a network attachment definition."""

    @pytest.mark.parametrize(("key", "what"), [("cidr", "subnets"), ("gateway", "gateways"), ("exclude", "exclusions")])
    @pytest.mark.parametrize("text", [",".join(WRONG), json.dumps(WRONG)], ids=["comma list", "JSON"])
    def test_too_many_values_in_annotations(self, key: str, what: str, text: str, problems_of: ProblemsOf) -> None:
        stated = {"cidr": CIDR, key: text}
        assert problems_of(**stated) == (
            f"opencontrail.org/{key}: 1025 {what} are too many: at most 1024 are supported",
        )

    @pytest.mark.parametrize(
        ("place", "what", "text"),
        [
            ("routes", "routes", config(routes=WRONG)),
            ("dns", "name servers", config(dns={"nameservers": WRONG})),
        ],
    )
    def test_too_many_values_in_spec_config(self, place: str, what: str, text: str, problems_of: ProblemsOf) -> None:
        assert problems_of(text, cidr=CIDR) == (
            f"spec.config, {place}: 1025 {what} are too many: at most 1024 are supported",
        )

    def test_as_many_as_the_limit_are_accepted(self, define: Define) -> None:
        text = config(
            routes=[{"dst": f"20.0.{i // 256}.{i % 256}/32"} for i in range(MAX_LIST_ITEMS)],
            dns={"nameservers": addresses(MAX_LIST_ITEMS)},
        )
        subnets = [f"10.{i // 256 + 2}.{i % 256}.0/24" for i in range(MAX_LIST_ITEMS - 1)]
        definition = define(text, cidr=",".join([CIDR, *subnets]), exclude=",".join(addresses(MAX_LIST_ITEMS)))
        assert len(definition.routes) == len(definition.dns) == len(definition.subnets) == MAX_LIST_ITEMS
        assert len(definition.subnets[0].excluded) == MAX_LIST_ITEMS

    def test_ranges_count_as_the_cidrs_that_they_expand_to(self, define: Define, problems_of: ProblemsOf) -> None:
        """One of these IPv6 ranges expands to 126 CIDRs."""
        ranges = [f"fd00:0:0:{i:x}::1-fd00:0:0:{i:x}:ffff:ffff:ffff:fffe" for i in range(100)]
        few = MAX_EXCLUDED_CIDRS // 126
        (subnet,) = define(cidr="fd00::/48", exclude=",".join(ranges[:few])).subnets
        assert len(subnet.excluded) == 126 * few
        problem = f"the ranges up to {ranges[few]!r} expand to more than 8192 CIDRs"
        assert problems_of(cidr="fd00::/48", exclude=",".join(ranges)) == (f"opencontrail.org/exclude: {problem}",)

    def test_a_network_name_is_at_most_as_long_as_a_file_name(self, define: Define, problems_of: ProblemsOf) -> None:
        """Container runtimes use it as a file name, and every interface contains it."""
        assert define(config(name="a" * 255), cidr=CIDR).config_name == "a" * 255
        (problem,) = problems_of(config(name="a" * 256), cidr=CIDR)
        form = "use at most 255 letters, digits, '_', '.' and '-', beginning with a letter or digit"
        assert problem.endswith(f"is not a valid network name: {form}")


class TestPods:
    """Lists in the annotation of a pod."""

    @pytest.mark.parametrize(
        "text",
        [",".join(["net a"] * 257), json.dumps([7] * 257), " , " * 256],
        ids=["comma list", "JSON", "commas"],
    )
    def test_too_many_networks_are_rejected(self, text: str) -> None:
        with pytest.raises(AnnotationError) as caught:
            parse_networks(text, namespace="shop")
        message = "k8s.v1.cni.cncf.io/networks: 257 networks are too many: at most 256 are supported"
        assert str(caught.value) == message

    @pytest.mark.parametrize("text", [",".join(["a"] * MAX_NETWORKS), json.dumps([{"name": "a"}] * MAX_NETWORKS)])
    def test_as_many_as_the_limit_are_accepted(self, text: str) -> None:
        assert len(parse_networks(text, namespace="shop")) == MAX_NETWORKS


def test_the_message_of_many_problems_is_short(make_nad: MakeNad) -> None:
    """The event of every pod that refers to the NAD contains it."""
    text = config(routes=[{"dst": f"20.0.0.{i}/8"} for i in range(1, 101)])
    nad = make_nad({"opencontrail.org/cidr": CIDR}, text)
    with pytest.raises(NadError) as caught:
        parse_nad(nad, default_mtu=1500)
    assert len(caught.value.problems) == 100
    assert "routes[0]" in str(caught.value)
    assert str(caught.value).endswith("; and 84 more")
    assert len(str(caught.value)) < 2000


def test_a_nested_value_is_truncated_in_the_message(make_nad: MakeNad) -> None:
    deep: Any = "x"
    for _ in range(6):
        deep = [deep] * 6
    with pytest.raises(NadError) as caught:
        parse_nad(make_nad({"opencontrail.org/cidr": CIDR}, config(ipam=deep)), default_mtu=1500)
    assert len(str(caught.value)) < 1000
