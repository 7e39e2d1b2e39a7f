"""`kubectl apply -k`, the one command that installs: the API server stores each overlay as it is built."""

from typing import Any

import pytest
import yaml

from tests.support.applied_manifests import collection, holds
from tests.support.kubectl.client import ALL_OVERLAYS, OVERLAYS, CommandError, Kubectl, Object, built, key
from tests.support.real_apiserver.server import ApiServer


@pytest.mark.parametrize("overlay", ALL_OVERLAYS)
def test_an_overlay_is_stored_as_it_is_built(api_server: ApiServer, kubectl: Kubectl, overlay: str) -> None:
    kubectl("apply", "-k", f"deploy/overlays/{overlay}")
    for item in built(OVERLAYS / overlay):
        assert holds(stored_object(api_server, item), item), key(item)


@pytest.mark.parametrize("overlay", ALL_OVERLAYS)
def test_a_second_time_changes_no_object(api_server: ApiServer, kubectl: Kubectl, overlay: str) -> None:
    versions = []
    for _ in range(2):
        kubectl("apply", "-k", f"deploy/overlays/{overlay}")
        stored = [stored_object(api_server, item)["metadata"] for item in built(OVERLAYS / overlay)]
        versions.append({each["uid"]: each.get("generation", each["resourceVersion"]) for each in stored})
    assert versions[0] == versions[1]


def test_validation_is_strict(kubectl: Kubectl, checkout: Any) -> None:
    """Otherwise the API server would remove a misspelt field, with a warning."""
    file = checkout / "deploy" / "base" / "disruption-budget.yaml"
    budget = yaml.safe_load(file.read_text())
    budget["spec"]["maxUnavailables"] = 1
    file.write_text(yaml.safe_dump(budget))
    with pytest.raises(CommandError, match="maxUnavailables"):
        kubectl("apply", "-k", "deploy/overlays/standalone")


def stored_object(server: ApiServer, item: Object) -> Object:
    """What the API server has of an object."""
    stored: Object = server.ask("GET", f"{collection(server, item)}/{item['metadata']['name']}")
    return stored
