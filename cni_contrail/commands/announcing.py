"""Announcing an attachment, to neighbours and in the log, which no runtime waits for."""

from __future__ import annotations

from cni_contrail.commands.attempt import Attempt
from cni_contrail.commands.request import Request
from cni_contrail.errors import PluginError
from cni_contrail.link.announce import announce
from cni_contrail.link.errors import LinkError
from cni_contrail.state.records import Record


def announce_attached(request: Request, netns: int, attempt: Attempt) -> None:
    """Tells of an attachment if it is still there; never fails.

    Where the runtime has its answer already, its DEL may be faster than this, and another ADD after it.
    """
    try:
        with request.locked():
            record = attempt.record()
            if record is not None:
                _log(request, record)
                announce(netns, [each.plan for each in record.interfaces])
    except (PluginError, LinkError) as error:
        request.node.log.warning(f"addresses are not announced: {error}")


def _log(request: Request, record: Record) -> None:
    for each in record.interfaces:
        addresses = " ".join(address.address for address in each.plan.addresses)
        request.node.log.bind(vmi=each.uuid).info(f"attached {each.plan.name} {addresses}")
