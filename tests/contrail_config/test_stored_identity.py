"""Identity of networks that others made: a network of ours with their uuid and gateways."""

import msgspec

from contrail_config.objects import Subnet, VirtualNetwork
from contrail_config.stored_identity import with_stored_identity
from tests.support.virtual_networks import make_network

UUID = "0a000000-0000-4000-8000-00000000000a"


def made_by_others(*subnets: Subnet) -> VirtualNetwork:
    return msgspec.structs.replace(make_network(), uuid=UUID, subnets=subnets)


def test_uuid_and_gateways_stay_and_the_rest_is_as_wanted() -> None:
    wanted = make_network("left", "10.1.0.0/24", "fd00::/64", excluded=("10.1.0.9",), mtu=1400)
    stored = made_by_others(Subnet("fd00::/64", "fd00::f"), Subnet("10.1.0.0/24", "10.1.0.254"))
    found = with_stored_identity(wanted, stored)
    assert (found.uuid, found.mtu) == (UUID, 1400)
    assert found.subnets == (Subnet("fd00::/64", "fd00::f"), Subnet("10.1.0.0/24", "10.1.0.254", ("10.1.0.9",)))


def test_other_cidrs_stay_as_wanted() -> None:
    wanted = make_network()
    found = with_stored_identity(wanted, made_by_others(Subnet("10.9.0.0/24", "10.9.0.254")))
    assert (found.uuid, found.subnets) == (UUID, wanted.subnets)


def test_a_network_of_this_uuid_may_change_its_gateway() -> None:
    wanted = make_network()
    stored = msgspec.structs.replace(wanted, subnets=(Subnet("10.1.0.0/24", "10.1.0.254"),))
    assert with_stored_identity(wanted, stored) == wanted
