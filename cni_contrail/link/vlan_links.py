"""VLAN links of the host, which the macvlans of nested mode share: found, created, and deleted when unused.

Callers hold the locks of the VLANs: whoever creates a macvlan over a VLAN link, and whoever deletes that link.

A VLAN link is ours if it has our alias, which the upstream plugin uses too. The kernel has one link for each VLAN of a
parent; one that somebody else created is used, unchanged, and never deleted.

The kernel does not tell whether macvlans in other namespaces use a link. But it creates a macvlan in mode passthru only
if its link has no other one, and creates no other one beside it. So before a VLAN link is deleted, such a macvlan is
created, the guard: it succeeds if the link is unused, and keeps it so. It is deleted with the link.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from cni_contrail.link import links, vlan_messages
from cni_contrail.link.errors import KernelError, LinkError, LinkExistsError, NotReadyError, ParentNotFoundError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo, LinkRef
from cni_contrail.link.lookup import index_of, name_of
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import delete_links
from cni_contrail.link.sysctls import Sysctls
from cni_contrail.link.vlan_messages import VlanLink

_ALIAS = "contrail-k8s-cni-vlan-"
_IN_USE = (errno.EINVAL, errno.EBUSY)  # by another macvlan; by a bridge, or another kind of link over it
_MODULES = {"macvlan": "macvlan", "vlan": "8021q"}


def vlan_alias(vlan_id: int) -> str:
    """Returns the alias of our VLAN links."""
    return f"{_ALIAS}{vlan_id}"


def is_ours(vlan: VlanLink) -> bool:
    """Whether this plugin or the upstream plugin created the link."""
    return vlan.info.alias == vlan_alias(vlan.vlan_id)


def ensure_vlan_link(host: RouteSocket, plan: InterfacePlan, sysctls: Sysctls) -> VlanLink:
    """Returns the VLAN link of the plan, created if it is missing; it is up.

    Raises ParentNotFoundError, NotReadyError, LinkExistsError, KernelError, SysctlError or LinkError; a link that was
    created exists then, and is ours to release.
    """
    parent = usable_parent(host, plan.parent)
    vlan = _link(host, plan.host_name) or _create(host, plan, parent)
    if (vlan.parent_index, vlan.vlan_id) != (parent.ifindex, plan.vlan_id):
        raise LinkExistsError(plan.name, plan.host_name, "host")
    if is_ours(vlan):
        delete_guards(host, [vlan])
        if not vlan.info.is_up:
            _set_up(host, plan, vlan, sysctls)
    elif not vlan.info.is_up:
        raise NotReadyError(f"{plan.name}: link {vlan.info.name}, which has VLAN {plan.vlan_id}, is down")
    if plan.mtu > vlan.info.mtu:
        raise LinkError(f"{plan.name}: its MTU of {plan.mtu} exceeds that of link {vlan.info.name}, {vlan.info.mtu}")
    return vlan


def release_vlan_links(host: RouteSocket, vlans: Iterable[VlanLink]) -> list[VlanLink]:
    """Deletes those that are ours and that no macvlan of any namespace uses; returns ours that are in use.

    Raises KernelError.
    """
    ours = [vlan for vlan in vlans if is_ours(vlan)]
    delete_guards(host, ours)
    errors = host.execute([vlan_messages.create_guard(_guard_name(vlan), vlan.ref) for vlan in ours])
    for error in errors.values():
        if error.errno not in (*_IN_USE, errno.ENODEV):
            raise error
    delete_links(host, [vlan.ref for position, vlan in enumerate(ours) if position not in errors])
    return [ours[position] for position, error in errors.items() if error.errno in _IN_USE]


def delete_guards(host: RouteSocket, vlans: Iterable[VlanLink]) -> None:
    """Deletes the guards that killed calls left; raises KernelError."""
    names = map(_guard_name, vlans)
    delete_links(host, [LinkRef(name, index) for name in names if (index := index_of(host, name)) is not None])


def our_vlan_links(host: RouteSocket) -> list[tuple[VlanLink, str]]:
    """Returns all VLAN links that are ours, each with the name of its parent; raises KernelError."""
    ours = [vlan for vlan in _vlans(host) if is_ours(vlan)]
    return [(vlan, parent) for vlan in ours if (parent := name_of(host, vlan.parent_index)) is not None]


def find_vlan_link(host: RouteSocket, plan: InterfacePlan) -> VlanLink | None:
    """Returns the VLAN link of the plan, whoever created it, None if there is none; raises KernelError."""
    vlan = _link(host, plan.host_name)
    if vlan is not None and vlan.vlan_id == plan.vlan_id:
        return vlan
    wanted = (index_of(host, plan.parent), plan.vlan_id)
    return next((each for each in _vlans(host) if (each.parent_index, each.vlan_id) == wanted), None)


def usable_parent(host: RouteSocket, name: str) -> LinkInfo:
    """Returns the parent interface; raises ParentNotFoundError, NotReadyError if it is down, or KernelError."""
    (answer,) = host.get([links.get(name)])
    if isinstance(answer, KernelError):
        if answer.errno != errno.ENODEV:
            raise answer
        raise ParentNotFoundError(f"parent-interface: link {name} not found")
    parent = links.parse_link(answer)
    if not parent.is_up:
        raise NotReadyError(f"parent-interface: link {name} is down")
    return parent


def explained(error: KernelError, kind: str) -> LinkError:
    """Returns the error of creating a link of the kind, which names a missing kernel module."""
    # Also returned, with another text, for a parent that cannot carry VLANs.
    if error.errno == errno.EOPNOTSUPP and "device type" in str(error):
        return LinkError(f"{error}: the kernel has no links of kind {kind}: load module {_MODULES[kind]}")
    return error


def _create(host: RouteSocket, plan: InterfacePlan, parent: LinkInfo) -> VlanLink:
    """Creates the link, or returns the one that has this VLAN under a name of somebody else."""
    # The alias is set in the same datagram, which the kernel executes whole even if the process is killed. If another
    # link has the VLAN, none has the name, and setting the alias fails.
    requests = [vlan_messages.create_vlan(plan, parent.ifindex)]
    if index_of(host, plan.host_name) is None:
        requests.append(vlan_messages.set_alias(plan.host_name, vlan_alias(plan.vlan_id)))
    errors = host.execute(requests)
    if errors and errors[min(errors)].errno != errno.EEXIST:
        raise explained(errors[min(errors)], "vlan")
    vlan = find_vlan_link(host, plan)
    if vlan is None:
        if index_of(host, plan.host_name) is not None:
            raise LinkExistsError(plan.name, plan.host_name, "host")
        reason = "its link is in another network namespace" if errors else "its link was deleted at once"
        raise LinkError(f"{plan.name}: cannot use VLAN {plan.vlan_id} of {plan.parent}: {reason}")
    return vlan


def _set_up(host: RouteSocket, plan: InterfacePlan, vlan: VlanLink, sysctls: Sysctls) -> None:
    """Isolates the link from the node, as the host end of a veth pair, and sets it up."""
    settings = plan._replace(host_name=vlan.info.name, alias=vlan.info.alias, mtu=vlan.info.mtu)
    sysctls.configure_host_ends([settings])
    errors = host.execute([links.set_host_end(settings, ipv6=sysctls.supports_ipv6(settings))])
    for error in errors.values():
        if error.errno == errno.ENETDOWN:  # since it was read
            raise NotReadyError(f"parent-interface: link {plan.parent} is down") from error
        raise error


def _link(host: RouteSocket, name: str) -> VlanLink | None:
    (answer,) = host.get([links.get(name)])
    if not isinstance(answer, KernelError):
        return vlan_messages.parse_vlan(answer)
    if answer.errno != errno.ENODEV:
        raise answer
    return None


def _vlans(host: RouteSocket) -> list[VlanLink]:
    return [vlan for body in host.dump(vlan_messages.dump_vlans()) if (vlan := vlan_messages.parse_vlan(body))]


def _guard_name(vlan: VlanLink) -> str:
    return f"guard{vlan.info.ifindex}"
