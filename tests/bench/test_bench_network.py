"""The benchmark of networks across nodes runs; its figures are only meaningful in `scripts/bench`.

`tests/e2e/across_nodes` has a test of the parts that need a real API server.
"""

import pytest

from tests.bench.network import main as measure_network

pytestmark = pytest.mark.machine


def test_each_kind_of_path_is_measured() -> None:
    measured = measure_network("tcp", quick=True)["tcp"]
    assert len(measured) == 6
    assert {rate["Gbit/s"] > 0 for rate in measured.values()} == {True}
