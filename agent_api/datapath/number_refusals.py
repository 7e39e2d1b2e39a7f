"""Refusals because of numbers (VNI) that disagree with the network's own. Pure.

Nodes tell networks apart by number alone. A pod that kept the former number of its network, which another network may
have now, would reach that one, and so would packets to a node that has the network with another number.
"""

from collections.abc import Iterable

from agent_api.datapath.fabric import Fabric
from agent_api.datapath.refusals import name_of, with_nodes_of_other_vni, with_other_vni
from contrail_config.objects import Refusal, VirtualMachineInterface


def number_refusal(interface: VirtualMachineInterface, fabric: Fabric | None) -> Refusal | None:
    """Returns why an interface is not connected although it has a number: its network has another one now."""
    number = None if fabric is None else fabric.number(interface.network_uuid)
    if number is None or interface.vni in (0, number):
        return None
    return with_other_vni(name_of(interface), number)


def node_refusals(interfaces: Iterable[VirtualMachineInterface], fabric: Fabric | None) -> list[Refusal]:
    """Returns the refusals of other nodes; `interfaces` are one for each network that this node connects."""
    if fabric is None:
        return []
    return [
        with_nodes_of_other_vni(name_of(each), nodes)
        for each in interfaces
        if (nodes := fabric.nodes_of_other_number(each.network_uuid, each.vni))
    ]
