"""Objects that exist once the server has started."""

import uuid

from tests.support.contrail_api import network_numbers
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.stored import FqName, Object, Stored, common_properties

DOMAIN = ("default-domain",)
PROJECT = (*DOMAIN, "default-project")
CONFIG = ("default-global-system-config",)
_NETWORKS = ("default-virtual-network", "ip-fabric", "__link_local__", "dci-network")


def install(database: Database) -> None:
    """Creates them, in an empty database."""
    _add(database, "global-system-config", CONFIG)
    domain = _add(database, "domain", DOMAIN)
    project = _add(database, "project", PROJECT, domain)
    for ipam in ("default-network-ipam", "service-chain-flat-ipam"):
        _add(database, "network-ipam", (*PROJECT, ipam), project)
    _add(database, "security-group", (*PROJECT, "__no_rule__"), project)
    for number, network in enumerate(_NETWORKS, 1):
        stored = _add(
            database,
            "virtual-network",
            (*PROJECT, network),
            project,
            {"virtual_network_network_id": number, "is_shared": False},
        )
        network_numbers.claim_vxlan_id(database, number, f"{stored.uuid}/id")


def _add(
    database: Database, kind: str, fq_name: FqName, parent: Stored | None = None, properties: Object | None = None
) -> Stored:
    new = Stored(KINDS[kind], str(uuid.uuid4()), fq_name, (parent.kind.name, parent.uuid) if parent else None)
    new.properties = {**common_properties(new.uuid, {}, fq_name[-1]), **(properties or {})}
    return database.write(new)
