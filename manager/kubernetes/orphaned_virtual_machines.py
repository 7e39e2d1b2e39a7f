"""Orphaned virtual machines: those in the store whose pods do not exist, and of which the manager knows nothing.

The manager deletes the virtual machines of pods that it sees go. It does not know one that a former leader wrote after
this one had listed all, or that was restored from a backup. Nothing else would delete it, since owner references do not
work across namespaces.

An orphan is reported only after a delay in which its pod would have been seen: longer than the time after which a
watch without any event counts as broken.
"""

import asyncio
from collections.abc import Callable, Sequence

from contrail_config.objects import VirtualMachine

DELAY = 180.0
"""Seconds from the appearance of a virtual machine without a pod to its report."""

OnOrphaned = Callable[[VirtualMachine], None]
"""Called with a virtual machine whose pod does not exist. The manager may know it nevertheless, and be deleting it."""


class OrphanedVirtualMachines:
    """Reports orphans to callbacks. Belongs to one event loop.

    `pod_exists` says whether the pod of a virtual machine is known to exist, `problems` why that may be outdated.
    """

    def __init__(self, *, pod_exists: Callable[[VirtualMachine], bool], problems: Callable[[], Sequence[str]]) -> None:
        self._pod_exists = pod_exists
        self._problems = problems
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._callbacks: list[OnOrphaned] = []

    def on_orphaned(self, callback: OnOrphaned) -> None:
        """Registers a callback."""
        self._callbacks.append(callback)

    def appeared(self, vm: VirtualMachine) -> None:
        """Takes a virtual machine that somebody wrote: without a pod it is reported after the delay."""
        if not self._pod_exists(vm) and vm.uuid not in self._timers:
            self._examine_later(vm)

    def close(self) -> None:
        """Reports no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _examine_later(self, vm: VirtualMachine) -> None:
        self._timers[vm.uuid] = asyncio.get_running_loop().call_later(DELAY, self._examine, vm)

    def _examine(self, vm: VirtualMachine) -> None:
        del self._timers[vm.uuid]
        if self._pod_exists(vm):
            return
        if self._problems():  # pods are not up to date
            self._examine_later(vm)
            return
        for callback in self._callbacks:
            callback(vm)
