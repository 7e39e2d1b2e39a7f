"""System calls of a process as steps before which another run of it is killed, by strace."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class Step(NamedTuple):
    """The `number`th call of a system call in a process."""

    name: str
    number: int

    def kill(self) -> list[str]:
        """Prefix of a command that is killed when it is about to take this step."""
        return self._inject("KILL")

    def stop(self) -> list[str]:
        """Prefix of a command that stops after this step, as by SIGSTOP."""
        return self._inject("STOP")

    def _inject(self, signal: str) -> list[str]:
        what = f"{self.name}:signal={signal}:when={self.number}"
        return ["strace", "-qq", "--output=/dev/null", f"--trace={self.name}", f"--inject={what}"]


def traced_steps(trace: str) -> Iterator[tuple[Step, str]]:
    """Yields the steps in the output of strace for one process, each with its line."""
    counts = Counter[str]()
    for line in trace.splitlines():
        if "(" in line:
            name = line.partition("(")[0]
            counts[name] += 1
            yield Step(name, counts[name]), line
