"""Numbers of networks: one pool of claims for network ids and VXLAN ids."""

from itertools import count

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.database import Database

FIRST = 5
"""The first network id that is not one of the server's own networks."""


def claim_lowest(database: Database, claimant: str) -> int:
    """Claims the lowest free network id."""
    return next(number for number in count(FIRST) if database.claims.setdefault(_path(number), claimant) == claimant)


def claim_vxlan_id(database: Database, number: int, claimant: str) -> None:
    """Claims a VXLAN id. Raises ApiError."""
    if database.claim(_path(number), claimant) is not None:
        raise ApiError(400, f"Cannot set VXLAN_ID: {number}, it has already been set")


def free(database: Database, number: int | None, claimant: str) -> None:
    if number is not None:
        database.unclaim(_path(number), claimant)


def _path(number: int) -> str:
    return f"double/id/virtual-networks/{number:010d}"
