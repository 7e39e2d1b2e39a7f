"""A wrong cell of the matrix fails the demo: tried on its own node, whose pods are connected differently meanwhile."""

import contextlib
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence

import pytest

from demo import cli, pods
from demo.container_runtime import PodSandbox
from demo.matrix import Answer, Cell, asked
from demo.resources import DemoResources

pytestmark = pytest.mark.machine

BETWEEN = ("2001:db8::1", "2001:db8::2")
"""Addresses of a link between two pods that no network of them has."""

Meddling = Callable[[Sequence[Cell]], "contextlib.AbstractContextManager[str]"]
Run = Callable[[Meddling], tuple[int, str, list[str]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs the demo on pods that are changed while it pings; `--stop` removes what is left.

    Returns exit status and output of the demo, and its errors, which are those that the change was to cause.
    """
    resources = DemoResources(f"ct-{uuid.uuid4().hex[:8]}-demo")

    def run_with(meddling: Meddling) -> tuple[int, str, list[str]]:
        expected = []

        def ask(wanted: Sequence[Cell]) -> list[Answer]:
            with meddling(wanted) as sentence:
                expected.append(f"demo: check failed: {sentence}")
                return asked(wanted)

        monkeypatch.setattr(pods, "asked", ask)
        status = cli.main(["--name", resources.name])
        output, errors = capsys.readouterr()
        assert errors.splitlines() == expected
        return status, output, expected

    yield run_with
    assert cli.main(["--name", resources.name, "--stop"]) == 0


def in_pod(sandbox: PodSandbox, *command: str) -> None:
    subprocess.run(["ip", "netns", "exec", sandbox.namespace, *command], check=True, timeout=10)


def cell_of(wanted: Sequence[Cell], source: str, target: str, *, must_reach: bool) -> Cell:
    """The last IPv6 cell of two pods: one in the network of the highest index that has IPv6."""
    return next(
        cell
        for cell in reversed(wanted)
        if (cell.source.pod.name, cell.target.pod.name, cell.must_reach) == (source, target, must_reach)
        and ":" in cell.address
    )


@contextlib.contextmanager
def separated(wanted: Sequence[Cell]) -> Iterator[str]:
    """Drops what one pod receives from another one, with which it shares a network."""
    cell = cell_of(wanted, "named", "twice", must_reach=True)
    rule = f"ip6 saddr {cell.source_address} ip6 daddr {cell.address} drop"
    in_pod(cell.target, "nft", f"table inet t {{ chain c {{ type filter hook input priority 0; {rule}; }}; }}")
    yield f"pod shop/named does not reach {cell.address} of pod shop/twice in shop/blue"


@contextlib.contextmanager
def joined(wanted: Sequence[Cell]) -> Iterator[str]:
    """Links two pods that share no network but index 0."""
    cell = cell_of(wanted, "plain", "ipv6-only", must_reach=False)
    peer = ("peer", "name", "aside", "netns", cell.target.namespace)
    in_pod(cell.source, "ip", "link", "add", "aside", "type", "veth", *peer)
    for sandbox, address in zip((cell.source, cell.target), BETWEEN, strict=True):
        in_pod(sandbox, "ip", "address", "add", f"{address}/64", "dev", "aside", "nodad")
        in_pod(sandbox, "ip", "link", "set", "aside", "up")
    in_pod(cell.source, "ip", "route", "add", f"{cell.address}/128", "via", BETWEEN[1])
    yield f"pod shop/plain reaches {cell.address} of pod shop/ipv6-only in shop/green"
    in_pod(cell.source, "ip", "link", "delete", "aside")


@pytest.mark.parametrize("meddling", [separated, joined])
def test_one_wrong_cell_fails_the_demo_and_is_named(run: Run, meddling: Meddling) -> None:
    status, output, expected = run(meddling)
    assert len(expected) == 1
    assert status == 1
    assert output.count("WRONG") == 1
    assert "all checks passed" not in output
