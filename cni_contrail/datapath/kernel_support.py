"""Rehearsal of the datapath: whether this process may program the kernel, and whether the kernel has all that it needs.

The reconciler makes a network with an uplink, and the filter of routed ports, in network namespaces and a mount
namespace that go with the thread that made them. So what is tried is what is used later, modules are loaded, and the
node keeps nothing of it, even if the process is killed.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import Masquerade, Network
from cni_contrail.datapath.held_namespaces import HeldNamespaces
from cni_contrail.datapath.missing_modules import MISSING, commit, explained, open_filters
from cni_contrail.datapath.namespaces import Namespaces, enter_private_namespaces
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.datapath.system_calls import CLONE_NEWNET, system_call
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.plan import Address

_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_NETWORK = Network(vni=1, mtu=1500, gateways=(Address("192.0.2.1", 24),), ports=(), snat=True)  # RFC 5737
_NO_DIRECTORY = "/nonexistent"  # held namespaces are found there if they are pinned, and these never are


def check_kernel_support() -> None:
    """Raises LinkError, which names the capability or the kernel module that is missing, if there can be no datapath.

    The calling thread is in the node's network namespace.
    """
    missing = [name for name, bit in _CAPABILITIES.items() if not _effective_capabilities() >> bit & 1]
    if missing:
        raise LinkError(f"capability {missing[0]} is missing")
    _check_own_namespace()
    problems = _problems(_rehearse_with_mounts)
    if problems:
        raise LinkError(problems[0])


def missing_module(masquerade: Masquerade | None, *, sysctl_dir: str = "/proc/sys") -> str:
    """Returns what a datapath fails with for lack of a kernel module; empty if the kernel has all that it needs.

    It mounts nothing, which a daemon in a container may not do, and needs the modules for masquerading only if index 0
    has it. What else fails is left to the reconciler, which tries it again and names the network.
    """

    def rehearse() -> list[str]:
        system_call("unshare", CLONE_NEWNET)
        namespaces = HeldNamespaces(_NO_DIRECTORY)
        try:
            return _rehearse(namespaces, masquerade, sysctl_dir)
        finally:
            namespaces.delete(_NETWORK.vni)

    return next((problem for problem in _problems(rehearse) if problem.startswith(MISSING)), "")


def _effective_capabilities() -> int:
    with open("/proc/thread-self/status") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))


def _check_own_namespace() -> None:
    """Raises LinkError if capabilities are those of a user namespace that does not own the network namespace."""
    try:
        with open_filters() as filters:
            filters.generation()
    except KernelError as error:
        if error.errno == errno.EPERM:
            raise LinkError(f"capability CAP_NET_ADMIN is missing in the node's network namespace: {error}") from error
        raise explained(error) from error


def _problems(rehearse: Callable[[], list[str]]) -> list[str]:
    """Returns the problems of a rehearsal, which runs in a thread of its own, since it leaves the node's namespaces."""
    problems: list[str] = []

    def run() -> None:
        try:
            problems.extend(rehearse())
        except LinkError as error:
            problems.append(str(error))

    thread = threading.Thread(target=run, name="kernel-support")
    thread.start()
    thread.join()
    return problems


def _rehearse_with_mounts() -> list[str]:
    return _rehearse(Namespaces(enter_private_namespaces()), Masquerade(()), "/proc/sys")


def _rehearse(namespaces: Namespaces, masquerade: Masquerade | None, sysctl_dir: str) -> list[str]:
    """Makes everything in the calling thread's network namespace, and returns what failed, in this order."""
    network = _NETWORK._replace(snat=masquerade is not None)
    problems = list(NodeReconciler(namespaces, sysctl_dir=sysctl_dir).reconcile([network]).problems.values())
    try:
        with open_filters() as filters:
            commit(filters, routed_rules.create_table(masquerade), routed_rules.MODULES)
    except LinkError as error:
        problems.append(str(error))
    return problems
