"""`deploy/uninstall` removes from nodes what the installer of `deploy/base` put there."""

from typing import Any

from tests.support.applied_manifests import MANIFESTS, documents

Container = dict[str, Any]

OBJECTS = {item["kind"]: item for item in documents(MANIFESTS.parent / "uninstall")}
PODS = {
    "installer": documents(MANIFESTS / "node.yaml")[0]["spec"]["template"]["spec"],
    "uninstaller": OBJECTS["DaemonSet"]["spec"]["template"]["spec"],
}


def container(name: str) -> Container:
    found: Container = next(each for each in PODS[name]["containers"] if each["name"] == name)
    return found


def host_paths(name: str) -> dict[str, str]:
    """Paths of the host by where they are mounted."""
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in PODS[name]["volumes"] if "hostPath" in volume}
    mounts = container(name)["volumeMounts"]
    return {mount["mountPath"]: paths[mount["name"]] for mount in mounts if mount["name"] in paths}


def test_it_has_the_same_directories_rights_and_image_as_the_installer() -> None:
    assert host_paths("uninstaller") == host_paths("installer")
    for key in ("image", "securityContext", "resources"):
        assert container("uninstaller")[key] == container("installer")[key]
    assert PODS["uninstaller"]["automountServiceAccountToken"] is False


def test_it_runs_wherever_the_installer_runs_and_has_no_interface() -> None:
    for key in ("nodeSelector", "tolerations", "hostNetwork", "securityContext", "priorityClassName"):
        assert PODS["uninstaller"][key] == PODS["installer"][key]


def test_it_outlives_what_it_uninstalls() -> None:
    namespace = OBJECTS["Namespace"]["metadata"]["name"]
    assert OBJECTS["DaemonSet"]["metadata"]["namespace"] == namespace
    assert namespace not in {item["metadata"].get("namespace") for item in documents(MANIFESTS)}
