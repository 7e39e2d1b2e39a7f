"""Whether a pod still asks for what it was given: networks are chosen when a pod is made and stay (rule 5)."""

from collections.abc import Sequence

from contrail_config.objects import VirtualMachine, VirtualMachineInterface
from manager.mapping.draft import InterfaceDraft


def difference(machine: VirtualMachine, drafts: Sequence[InterfaceDraft]) -> str | None:
    """What the pod asks for now that its machine is not; None if it asks for the same.

    Looks at what the pod itself says; a network's own changes concern new pods alone.
    """
    if len(machine.interfaces) != len(drafts):
        return f"{len(drafts)} interfaces instead of {len(machine.interfaces)}"
    for index, (interface, draft) in enumerate(zip(machine.interfaces, drafts, strict=True)):
        if changes := ", ".join(_differences(interface, draft)):
            return f"index {index}: {changes}"
    return None


def _differences(interface: VirtualMachineInterface, draft: InterfaceDraft) -> list[str]:
    has = {address.address for address in interface.addresses}
    pairs: list[tuple[str, object, object]] = [
        ("network", draft.nad or ":".join(draft.network.fq_name), interface.nad or ":".join(interface.network)),
        ("interface", draft.interface, interface.interface),
        ("mac", draft.mac or interface.mac, interface.mac),
        ("ips", " ".join(set(draft.wishes) - has), ""),
        ("default-gw", draft.default_gw, interface.default_gw),
    ]
    return [f"{what} {asked or 'none'} instead of {given or 'none'}" for what, asked, given in pairs if asked != given]
