"""`opencontrail.org/network` on NADs, pods and namespaces: a reference to an existing network."""

import pytest

from manager.parsing.errors import AnnotationError
from manager.parsing.network_reference import parse_network_annotation
from tests.manager.parsing.conftest import Define, ProblemsOf

REFERENCE = '{"domain": "default-domain", "project": "k8s-extns", "name": "k8s-extns-pod-network"}'
FQ_NAME = ("default-domain", "k8s-extns", "k8s-extns-pod-network")


@pytest.mark.parametrize("text", [REFERENCE, REFERENCE.replace('"', "'"), f"\n {REFERENCE} "])
def test_a_reference_is_json_or_a_python_literal_as_for_upstream(text: str) -> None:
    assert parse_network_annotation(text) == FQ_NAME


def test_a_nad_can_refer_to_a_network(define: Define) -> None:
    definition = define(network=REFERENCE)
    assert definition.reference == FQ_NAME
    assert definition.subnets == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"domain": "d", "project": "p"}', "name is missing"),
        ('{"project": "p", "name": "n"}', "domain is missing"),
        ('{"domain": "d", "project": 5, "name": "n"}', "project 5 is not a valid part of a network name"),
        ('{"domain": "", "project": "p", "name": "n"}', "domain '' is not a valid part of a network name"),
        ('{"domain": "d", "project": "p:q", "name": "n"}', "project 'p:q' is not a valid part of a network name"),
        (
            '{"domain": "d", "project": "p", "name": "a\\u0000b"}',
            "name 'a\\x00b' is not a valid part of a network name",
        ),
        ('["d", "p", "n"]', "is not a JSON object"),
        ("d:p:n", "is not valid JSON: line 1, column 1"),
        ("", "is not valid JSON: line 1, column 1"),
        ("{“domain”: 1}", "“ (U+201C) at line 1, column 2 is a typographic quote"),
    ],
)
def test_an_invalid_reference_is_reported(text: str, reason: str, problems_of: ProblemsOf) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse_network_annotation(text)
    assert str(caught.value).startswith("opencontrail.org/network: ")
    assert reason in str(caught.value)
    assert problems_of(network=text) == (str(caught.value),)


def test_subnets_together_with_a_reference_are_rejected(problems_of: ProblemsOf) -> None:
    (problem,) = problems_of(cidr="10.1.1.0/24", network=REFERENCE)
    assert problem.startswith("opencontrail.org/cidr '10.1.1.0/24' and opencontrail.org/network '{")
    assert problem.endswith("only one of them may define the network")


def test_a_nad_without_subnets_and_reference_is_rejected(problems_of: ProblemsOf) -> None:
    assert problems_of() == (
        "opencontrail.org/cidr, opencontrail.org/network: missing: one of them must define the network",
    )


@pytest.mark.parametrize("key", ["gateway", "exclude"])
def test_gateways_and_exclusions_are_rejected_with_a_reference(key: str, problems_of: ProblemsOf) -> None:
    assert problems_of(network=REFERENCE, **{key: "10.1.1.1"}) == (
        f"opencontrail.org/{key}: '10.1.1.1' has no effect without opencontrail.org/cidr",
    )
