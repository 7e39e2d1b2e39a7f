"""Fixture for the tests of the Kubernetes client."""

import pytest

from contrail_config.kube.client import KubeClient
from tests.support.config_maps import ConfigMaps


@pytest.fixture
def config_maps(client: KubeClient) -> ConfigMaps:
    return ConfigMaps(client)
