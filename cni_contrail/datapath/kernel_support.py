"""Rehearsal of the datapath: whether this process may program the kernel, and whether the kernel has all that it needs.

The reconciler makes a network with an uplink, and the filter of routed ports, in network namespaces and a mount
namespace that go with the thread that made them. So what is tried is what is used later, modules are loaded, and the
node keeps nothing of it, even if the process is killed.
"""

from __future__ import annotations

import errno
import threading

from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import Masquerade, Network
from cni_contrail.datapath.missing_modules import commit, explained, open_filters
from cni_contrail.datapath.namespaces import Namespaces, enter_private_namespaces
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.plan import Address

_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_NETWORK = Network(vni=1, mtu=1500, gateways=(Address("192.0.2.1", 24),), ports=(), snat=True)  # RFC 5737


def check_kernel_support() -> None:
    """Raises LinkError, which names the capability or the kernel module that is missing, if there can be no datapath.

    The calling thread is in the node's network namespace.
    """
    missing = [name for name, bit in _CAPABILITIES.items() if not _effective_capabilities() >> bit & 1]
    if missing:
        raise LinkError(f"capability {missing[0]} is missing")
    _check_own_namespace()
    problems: list[str] = []
    thread = threading.Thread(target=_rehearse, args=(problems,), name="kernel-support")
    thread.start()
    thread.join()
    if problems:
        raise LinkError(problems[0])


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


def _rehearse(problems: list[str]) -> None:
    try:
        directory = enter_private_namespaces()
        outcome = NodeReconciler(Namespaces(directory)).reconcile([_NETWORK])
        problems += outcome.problems.values()
        with open_filters() as filters:
            commit(filters, routed_rules.create_table(Masquerade(())), routed_rules.MODULES)
    except LinkError as error:
        problems.append(str(error))
