"""Interfaces of nested mode: macvlans in the sandbox, over VLAN links of the host's parent interface.

As `make`, all or nothing, with these differences:

- Step 1 finds or creates the VLAN links (`vlan_links`), and creates the macvlans directly in the sandbox. It holds the
  locks of the VLANs: a DEL of another pod would delete a VLAN link that nothing uses yet.
- There is no host end. Alias and final name are set in the sandbox (`vlan_messages.create_macvlan`).

A macvlan is found by the namespace ID of its sandbox, so no path to that is needed. It is ours if it has the alias of
its plan, or the temporary name, which no other plan has.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext

from cni_contrail.link import links, vlan_messages
from cni_contrail.link.errors import KernelError, LinkError, LinkExistsError, NotReadyError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.host_side import NO_NETWORKS, HostSides
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.make import checked_plans, finish_sandbox_ends
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import delete_links
from cni_contrail.link.sysctls import Sysctls
from cni_contrail.link.vlan_links import ensure_vlan_link, explained, find_vlan_link, release_vlan_links

_NO_NAMESPACE = errno.EINVAL  # of a request that names a namespace by an ID which none has

VlanLocks = Callable[[Sequence[InterfacePlan]], AbstractContextManager[None]]
"""Holds the locks of all VLANs of the plans."""


def make_macvlans(
    netns_fd: int, netns_id: int, plans: Sequence[InterfacePlan], locks: VlanLocks, *, sysctl_dir: str
) -> None:
    """Creates all interfaces of the plans in the sandbox, or none; `netns_id` is its ID in the host's namespace.

    Raises ParentNotFoundError, NotReadyError, and what `make.make_interfaces` raises.
    """
    sysctls = checked_plans(plans, sysctl_dir)
    with HostSides(NO_NETWORKS) as hosts:
        host = hosts.of("")
        with locks(plans):
            try:
                _create(host, netns_fd, plans, sysctls)
            except BaseException as error:
                _undo(host, netns_id, plans, nullcontext(), error)
                raise
        try:
            _name(netns_fd, plans)
            finish_sandbox_ends(hosts, netns_fd, plans, sysctls)
        except BaseException as error:
            _undo(host, netns_id, plans, locks(plans), error)
            if isinstance(error, KernelError) and error.errno == errno.EADDRINUSE:
                raise NotReadyError(f"{error}: another link of the VLAN has the MAC address") from error
            raise


def delete_macvlans(netns_id: int, plans: Sequence[InterfacePlan]) -> None:
    """Deletes those macvlans of the plans that exist; the sandbox may be gone. Raises KernelError."""
    with RouteSocket() as host:
        _delete(host, netns_id, plans)


def delete_macvlans_by_alias(netns_fd: int, prefix: str, only: str, *, kept: Collection[str]) -> list[str]:
    """Deletes the macvlans of a sandbox whose alias has the prefix, except those `kept`; returns their names.

    `only` is the name of the one to delete, or empty. Raises NetnsError or KernelError.
    """
    with open_route_socket(netns_fd) as sandbox:
        found = [
            info
            for body in sandbox.dump(links.dump())
            if (info := links.parse_link(body)).kind == "macvlan"
            and info.alias.startswith(prefix)
            and info.name not in kept
            and only in ("", info.name)
        ]
        delete_links(sandbox, [LinkRef(info.name, info.ifindex) for info in found])
    return [info.name for info in found]


def release_vlans(plans: Sequence[InterfacePlan]) -> list[str]:
    """Deletes VLAN links of the plans that are ours and unused; returns `host_name` of those in use.

    The caller holds their locks. Raises KernelError.
    """
    with RouteSocket() as host:
        return _release(host, plans)


def any_macvlan_exists(netns_id: int, plans: Sequence[InterfacePlan]) -> bool:
    """Returns whether a macvlan of the plans exists in the sandbox; raises KernelError."""
    with RouteSocket() as host:
        return bool(_found(host, netns_id, plans))


def temporary_name(plan: InterfacePlan) -> str:
    """Returns the name of the macvlan of the plan until it is complete."""
    return "mac" + hashlib.blake2b(f"{plan.alias}/{plan.name}".encode(), digest_size=6).hexdigest()


def _create(host: RouteSocket, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> None:
    vlans = {name: ensure_vlan_link(host, plan, sysctls) for name, plan in _one_per_vlan(plans).items()}
    errors = host.execute(
        [
            vlan_messages.create_macvlan(plan, temporary_name(plan), vlans[plan.host_name].info.ifindex, netns_fd)
            for plan in plans
        ]
    )
    if errors:
        raise explained(errors[min(errors)], "macvlan")


def _name(netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    with open_route_socket(netns_fd) as sandbox:
        errors = sandbox.execute([vlan_messages.name_macvlan(_created(sandbox, plan), plan) for plan in plans])
    if errors:
        first = min(errors)
        if errors[first].errno == errno.EEXIST:
            raise LinkExistsError(plans[first].name, plans[first].name, "sandbox")
        raise errors[first]


def _created(sandbox: RouteSocket, plan: InterfacePlan) -> LinkRef:
    name = temporary_name(plan)
    index = index_of(sandbox, name)
    if index is None:
        raise LinkError(f"{plan.name}: removed from the sandbox by another process while it was created")
    return LinkRef(name, index)


def _undo(
    host: RouteSocket,
    netns_id: int,
    plans: Sequence[InterfacePlan],
    locks: AbstractContextManager[None],
    cause: BaseException,
) -> None:
    try:
        _delete(host, netns_id, plans)
        with locks:
            _release(host, plans)
    except KernelError as error:
        raise LinkError(f"{cause}; cleanup failed too: {error}") from cause


def _delete(host: RouteSocket, netns_id: int, plans: Sequence[InterfacePlan]) -> None:
    requests = [vlan_messages.delete_in_netns(end, netns_id) for end in _found(host, netns_id, plans)]
    for error in host.execute(requests).values():
        if error.errno not in (errno.ENODEV, _NO_NAMESPACE):
            raise error


def _found(host: RouteSocket, netns_id: int, plans: Sequence[InterfacePlan]) -> list[LinkRef]:
    names = [(plan, name) for plan in plans for name in (plan.name, temporary_name(plan))]
    answers = host.get([vlan_messages.get_in_netns(name, netns_id) for _, name in names])
    found = []
    for (plan, name), answer in zip(names, answers, strict=True):
        if isinstance(answer, KernelError):
            if answer.errno not in (errno.ENODEV, _NO_NAMESPACE):
                raise answer
            continue
        info = links.parse_link(answer)
        if info.kind == "macvlan" and (name != plan.name or info.alias == plan.alias):
            found.append(LinkRef(name, info.ifindex))
    return found


def _release(host: RouteSocket, plans: Sequence[InterfacePlan]) -> list[str]:
    vlans = {name: find_vlan_link(host, plan) for name, plan in _one_per_vlan(plans).items()}
    in_use = release_vlan_links(host, [vlan for vlan in vlans.values() if vlan is not None])
    return [name for name, vlan in vlans.items() if vlan in in_use]


def _one_per_vlan(plans: Sequence[InterfacePlan]) -> dict[str, InterfacePlan]:
    """Returns a plan of each VLAN, by the name of its link."""
    return {plan.host_name: plan for plan in plans}
