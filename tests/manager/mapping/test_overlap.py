"""A pod may join overlapping networks, since networks are isolated, but gets a warning."""

from ipaddress import ip_network

from hypothesis import given
from hypothesis import strategies as st

from contrail_config.objects import Subnet, VirtualNetwork
from manager.mapping.overlap import overlaps
from manager.reasons import Reason
from tests.support.catalogues import resolve
from tests.support.pods import make_nad, make_pod


def network(number: int, *cidrs: str) -> VirtualNetwork:
    subnets = tuple(Subnet(cidr, None) for cidr in cidrs)
    return VirtualNetwork(fq_name=("d", "p", f"n{number}"), uuid=str(number), subnets=subnets)


def test_overlapping_networks_cause_a_warning() -> None:
    nads = (make_nad("net-a", cidr="10.1.0.0/16"), make_nad("net-b", cidr="10.1.128.0/17"))
    resolved = resolve(make_pod(networks="net-a,net-b"), *nads)
    assert len(resolved.interfaces) == 3
    (warning,) = resolved.warnings
    assert warning.reason is Reason.OVERLAPPING_NETWORKS
    assert warning.message == (
        "networks overlap: default-domain:k8s-blue:k8s-net-a-pod-network 10.1.0.0/16 "
        "and default-domain:k8s-blue:k8s-net-b-pod-network 10.1.128.0/17"
    )


def test_a_network_does_not_overlap_itself() -> None:
    assert resolve(make_pod(networks="net-a,net-a"), make_nad("net-a")).warnings == ()


def test_networks_of_different_families_do_not_overlap() -> None:
    """As integers these ranges are equal."""
    assert overlaps([network(1, "0.0.0.0/8"), network(2, "::/120")]) == []


_CIDRS = st.tuples(st.integers(0, 255), st.integers(24, 32)).map(
    lambda drawn: str(ip_network(f"10.0.0.{drawn[0]}/{drawn[1]}", strict=False))
)


@given(st.lists(_CIDRS, max_size=8))
def test_an_overlap_is_found_exactly_if_there_is_one(cidrs: list[str]) -> None:
    networks = [network(number, cidr) for number, cidr in enumerate(cidrs)]
    nets = [ip_network(cidr) for cidr in cidrs]
    expected = any(one.overlaps(other) for i, one in enumerate(nets) for other in nets[:i])
    assert bool(overlaps(networks)) is expected
