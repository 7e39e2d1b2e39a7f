"""Kernels that lack a module: the error names it. Modules are really unloaded, so only `scripts/kernels` runs this."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cni_contrail.datapath.kernel_support import check_kernel_support
from cni_contrail.link.errors import LinkError
from tests.cni_contrail.conftest import until

_FILES = Path("/run/modules-of-the-guest")
"""Made by the init of `scripts/kernels`: elsewhere nothing is unloaded."""


MODULES = ["nft_masq", "nft_chain_nat", "nft_ct", "nft_meta_bridge", "nf_tables", "bridge", "veth"]


@pytest.mark.parametrize("module", MODULES)
def test_a_kernel_without_a_module_is_refused_with_its_name(module: str) -> None:
    check_kernel_support()
    with _unloaded(module), pytest.raises(LinkError, match=f"kernel module {module} is missing: "):
        check_kernel_support()
    check_kernel_support()


@contextmanager
def _unloaded(module: str) -> Iterator[None]:
    """Unloads a module and those that use it. Nothing loads them on demand: the files of this kernel are elsewhere."""
    assert (_FILES / f"{module}.ko").exists(), "not on a kernel of scripts/kernels"
    unloaded: list[str] = []
    try:
        _unload(module, unloaded)
        yield
    finally:
        for each in reversed(unloaded):
            subprocess.run(["busybox", "insmod", str(_FILES / f"{each}.ko")], check=True, timeout=60)


def _unload(module: str, unloaded: list[str]) -> None:
    while users := _users()[module]:
        _unload(users[0], unloaded)
    until(lambda: _is_unloaded(module))  # namespaces that were deleted keep it for a moment
    unloaded.append(module)


def _is_unloaded(module: str) -> bool:
    return subprocess.run(["busybox", "rmmod", module], check=False, capture_output=True, timeout=60).returncode == 0


def _users() -> dict[str, list[str]]:
    """Loaded modules, with those that use them."""
    lines = (line.split() for line in Path("/proc/modules").read_text().splitlines())
    return {name: [each for each in users.split(",") if each not in ("", "-")] for name, _, _, users, *_ in lines}
