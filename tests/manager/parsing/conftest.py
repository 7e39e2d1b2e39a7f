"""NADs to parse."""

from collections.abc import Callable, Mapping

import pytest

from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import NetworkDefinition
from manager.source import Nad

OURS = '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}'

MakeNad = Callable[..., Nad]
Define = Callable[..., NetworkDefinition]
ProblemsOf = Callable[..., tuple[str, ...]]


@pytest.fixture
def make_nad() -> MakeNad:
    def make(annotations: Mapping[str, str], config: str | None = OURS) -> Nad:
        return Nad(namespace="shop", name="net-a", uid="", annotations=annotations, config=config)

    return make


@pytest.fixture
def define(make_nad: MakeNad) -> Define:
    """Parses a NAD with `opencontrail.org/<key>` annotations and `spec.config`."""

    def define(config: str = OURS, default_mtu: int = 1500, **annotations: str) -> NetworkDefinition:
        prefixed = {f"opencontrail.org/{key}": value for key, value in annotations.items()}
        definition = parse_nad(make_nad(prefixed, config), default_mtu=default_mtu)
        assert isinstance(definition, NetworkDefinition)
        return definition

    return define


@pytest.fixture
def problems_of(define: Define) -> ProblemsOf:
    """Returns the problems of an invalid NAD."""

    def problems_of(config: str = OURS, default_mtu: int = 1500, **annotations: str) -> tuple[str, ...]:
        with pytest.raises(NadError) as caught:
            define(config, default_mtu, **annotations)
        return caught.value.problems

    return problems_of
