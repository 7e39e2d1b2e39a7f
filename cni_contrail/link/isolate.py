"""Isolates host ends that an earlier version of this plugin created.

They have the settings of any link of the node, so a pod can reach the node, and what the node forwards to, through
them (see `links.set_host_end`).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.sysctls import Sysctls


def isolate_host_ends(plans: Sequence[InterfacePlan], *, sysctl_dir: str) -> None:
    """Isolates the host ends that exist and have our alias; the calling thread is in the host's network namespace.

    Raises KernelError, or SysctlError if a setting cannot be written.
    """
    sysctls = Sysctls(sysctl_dir)
    with RouteSocket() as host:
        answers = host.get([links.get(plan.host_name) for plan in plans])
        ours = [plan for plan, answer in zip(plans, answers, strict=True) if _has_alias(answer, plan.alias)]
        sysctls.configure_host_ends(ours)
        host.execute_all([links.isolate_host_end(plan) for plan in ours])


def _has_alias(answer: bytes | KernelError, alias: str) -> bool:
    if not isinstance(answer, KernelError):
        return links.parse_link(answer).alias == alias
    if answer.errno != errno.ENODEV:
        raise answer
    return False
