"""The tables of rights in `docs/security.md`, compared with the manifests in `deploy/base`."""

import re
from typing import Any

import pytest

from tests.support.applied_manifests import MANIFESTS, documents
from tests.support.documentation import code, section

Rule = tuple[str, frozenset[str], frozenset[str], bool]
Manifest = dict[str, Any]

OBJECTS: list[Manifest] = documents(MANIFESTS)


def documented(head: str) -> list[list[str]]:
    """The rows of the table whose head begins with that."""
    lines = section("security", "Rights of each part").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {head} "))
    table = lines[begin + 2 :]
    length = next((number for number, line in enumerate(table) if not line.startswith("|")), len(table))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[:length]]


def words(text: str) -> frozenset[str]:
    return frozenset(re.split(r", ", text.removesuffix(", in its own namespace")))


def test_every_permission_is_documented_and_no_other() -> None:
    granted: set[Rule] = {
        (role["metadata"]["name"], frozenset(rule["verbs"]), frozenset(rule["resources"]), "resourceNames" in rule)
        for role in OBJECTS
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
    }
    table = documented("Service account")
    assert {(code(row[0])[0], words(row[1]), words(row[2]), bool(row[3])) for row in table} == granted


def test_permissions_in_one_namespace_are_said_to_be_so() -> None:
    own = {
        resource
        for role in OBJECTS
        if role["kind"] == "Role"
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    table = documented("Service account")
    assert {next(iter(words(row[2]))) for row in table if row[2].endswith("in its own namespace")} == own


@pytest.mark.parametrize("row", documented("Container"), ids=lambda row: row[0])
def test_user_capabilities_and_host_paths_of_each_container(row: list[str]) -> None:
    pod, container = found(code(row[0])[0])
    security = {**pod["securityContext"], **container["securityContext"]}
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    mounted = {paths[mount["name"]] for mount in container["volumeMounts"] if mount["name"] in paths}
    capabilities = security["capabilities"]
    assert ("root" if security["runAsUser"] == 0 else str(security["runAsUser"])) == row[1]
    assert capabilities["drop"] == ["ALL"]
    assert (", ".join(capabilities.get("add", ())) or "none") == row[2]
    assert set(code(row[4])) == mounted
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("row", documented("Container"), ids=lambda row: row[0])
def test_who_has_a_token_for_the_api_server(row: list[str]) -> None:
    pod, container = found(code(row[0])[0])
    mounts_token = any("serviceaccount" in mount["mountPath"] for mount in container["volumeMounts"])
    has_token = pod.get("automountServiceAccountToken", True) or mounts_token
    assert row[3] == (f"service account `{pod['serviceAccountName']}`" if has_token else "none: no token is mounted")


def test_every_container_is_documented() -> None:
    names = {container["name"] for pod in pods() for container in containers(pod)}
    assert {code(row[0])[0] for row in documented("Container")} == names


def pods() -> list[Manifest]:
    return [each["spec"]["template"]["spec"] for each in OBJECTS if each["kind"] in ("Deployment", "DaemonSet")]


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def found(name: str) -> tuple[Manifest, Manifest]:
    return next((pod, each) for pod in pods() for each in containers(pod) if each["name"] == name)
