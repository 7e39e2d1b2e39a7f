"""Interface names in the sandbox, chosen by the Contrail plugin (thick mode) or by Multus.

Index 0 has the runtime's name, `eth0` with all known runtimes. The others have the requested name, else `eth<index>` in
thick mode and `net<k>` under Multus, counted over all attachments of the pod, including those of other plugins, after
the default networks that Multus adds to every pod.
"""

from collections.abc import Sequence

from contrail_config.objects import VirtualMachineInterface, interface_name
from manager.configuration import MetaPlugin, MetaPluginSettings
from manager.mapping.errors import PodRefusedError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import NETWORKS_KEY
from manager.reasons import Reason


def attachment_names(selections: Sequence[NetworkSelection], *, default_networks: int) -> list[str]:
    """Returns the CNI_IFNAME that Multus passes for each attachment."""
    automatic = (f"net{number}" for number in range(default_networks + 1, default_networks + 1 + len(selections)))
    return [selection.interface or name for selection, name in zip(selections, automatic, strict=True)]


def sandbox_names(interfaces: Sequence[VirtualMachineInterface], meta_plugin: MetaPluginSettings) -> tuple[str, ...]:
    """Returns the name that each interface of a pod gets in the sandbox."""
    return tuple(
        (index and meta_plugin.kind is MetaPlugin.MULTUS and interface.attachment)
        or interface_name(index, interface.interface)
        for index, interface in enumerate(interfaces)
    )


def reject_duplicate_names(
    selections: Sequence[NetworkSelection], meta_plugin: MetaPluginSettings, *, namespace: str
) -> None:
    """Raises PodRefusedError if two interfaces of a pod in the namespace would have the same name.

    Two elements that request the same name, and a request for `eth0`, were rejected when the annotation was parsed.
    """
    owners: dict[str, str] = {}
    if meta_plugin.kind is MetaPlugin.MULTUS:
        own = meta_plugin.default_networks_of(namespace)
        owners = {f"net{number}": f"default network {number} of Multus" for number in range(1, own + 1)}
        names = attachment_names(selections, default_networks=own)
    else:
        # Without a meta plugin a foreign NAD makes the pod wait, so all elements are interfaces of the Contrail plugin.
        names = [interface_name(index, selection.interface) for index, selection in enumerate(selections, 1)]
    for position, name in enumerate(names, 1):
        owner = owners.setdefault(name, f"element {position}")
        if owner != f"element {position}":
            problem = f"element {position} would be named {name!r} like {owner}: request another interface name"
            raise PodRefusedError(Reason.ANNOTATION_INVALID, f"{NETWORKS_KEY}: {problem}")
