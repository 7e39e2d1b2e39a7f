"""IPAMs: those with the flat-subnet method have subnets of their own."""

from tests.support.contrail_api.behaviour import Behaviour, Claim, nothing
from tests.support.contrail_api.stored import Stored
from tests.support.contrail_api.subnets import completed


class NetworkIpams(Behaviour):
    """Adds the defaults of its subnets."""

    def check_create(self, new: Stored) -> Claim:
        subnets = (new.properties.get("ipam_subnets") or {}).get("subnets")
        if subnets:
            new.properties["ipam_subnets"] = {"subnets": completed(subnets, ":".join(new.fq_name))}
        return nothing
