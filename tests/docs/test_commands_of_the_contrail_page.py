"""`docs/contrail-api.md`: its commands do what the text says, and name what exists in the manifests."""

import asyncio
import json
import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contrail_config.kube.configuration.value_source import FileValue, InlineValue
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.credential_files import Password, Tls
from contrail_config.vnc.keystone import KeystoneUser
from contrail_config.vnc.store import VncStore
from tests.contrail_config.kube.tls import path, server_context
from tests.support.applied_manifests import MANIFESTS, documents
from tests.support.contrail_api.authentication import TokenAuthentication
from tests.support.contrail_api.keystone import Keystone
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.documentation import ROOT, block, blocks, code, page
from tests.support.virtual_networks import make_network, start_pod

PAGE = "contrail-api"
OBJECTS = {(item["kind"].lower(), item["metadata"]["name"]): item for item in documents(MANIFESTS)}
OVERLAY = MANIFESTS.parent / "overlays" / "vrouter"
SECOND = "contrail-node-linux"
"""The DaemonSet that the page has its reader add."""


def commands(program: str) -> list[list[str]]:
    """The words of all commands of a program, in blocks and in the text."""
    inline = re.findall(r"`([^`\n]+)`", page(PAGE))
    texts = [*(text for each in blocks(PAGE) for text in re.split(r"\n(?=\S)", each)), *inline]
    return [shlex.split(text) for text in texts if text.startswith(f"{program} ")]


KUBECTL = commands("kubectl")


def test_the_commands_name_objects_of_the_manifests() -> None:
    named = [re.findall(r"\b(deployment|daemonset)[/ ](\S+)", " ".join(words)) for words in KUBECTL]
    objects = {pair for pairs in named for pair in pairs}
    assert objects - set(OBJECTS) == {("daemonset", SECOND)}
    namespaces = {words[words.index("-n") + 1] for words in KUBECTL if "-n" in words}
    assert namespaces == {OBJECTS["deployment", "contrail-manager"]["metadata"]["namespace"]}


def test_the_files_of_the_commands_exist() -> None:
    files = [word for words in KUBECTL for word in words if word.startswith("deploy/")]
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_secret_has_what_the_patches_mount_and_the_programs_read() -> None:
    (words,) = (words for words in KUBECTL if "secret" in words)
    assert words[words.index("generic") + 1] == "contrail-api"
    files = {word.partition("=")[2] for word in words if word.startswith("--from-file=")}
    read = re.findall(r"/etc/contrail-api/(\S+)", (OVERLAY / "manager-configuration.yaml").read_text())
    assert files == set(read)


def test_the_first_daemonset_keeps_off_the_nodes_that_get_the_label() -> None:
    (words,) = (words for words in KUBECTL if "--patch" in words)
    patch: dict[str, Any] = json.loads(words[words.index("--patch") + 1])
    affinity = patch["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    ((label, value),) = (words[-1].split("=") for words in KUBECTL if "label" in words)
    assert term["matchExpressions"] == [{"key": label, "operator": "DoesNotExist"}]
    assert json.dumps({label: value}) in page(PAGE)
    spec = OBJECTS["daemonset", "contrail-node"]["spec"]["template"]["spec"]
    assert "affinity" not in spec, "the patch would add to it"


@pytest.mark.parametrize("program", ["manager", "agent"])
def test_the_last_step_ends_with_the_configuration_of_a_cluster_of_its_own(program: str) -> None:
    """Read as written: the configuration is that of `deploy/overlays/vrouter` until then."""
    (text,) = re.findall(r"^4\. (In the configurations .*?)\n(?=5\.)", page(PAGE), re.MULTILINE | re.DOTALL)
    replaced = {key: value for span in code(text) if ": " in span for key, value in yaml.safe_load(span).items()}
    assert replaced == {"store": {"kind": "kubernetes"}, "network-slices": True}
    config_map = {"manager": "contrail-manager", "agent": "contrail-node"}[program]
    shipped = yaml.safe_load(OBJECTS["configmap", config_map]["data"][f"{program}.yaml"])
    (patch,) = documents(OVERLAY / "manager-configuration.yaml")
    keys = {"manager": patch["data"]["manager.yaml"], "agent": (OVERLAY / "agent.yaml").read_text()}
    on_contrail = {**shipped, **yaml.safe_load(keys[program])}
    assert on_contrail != shipped
    assert {key: replaced.get(key, value) for key, value in on_contrail.items()} == shipped


class Site:
    """A server with a token and a certificate, and what its operator has: a folder, and the client of keystone."""

    def __init__(self, folder: Path, server: ContrailApi, keystone: Keystone) -> None:
        self.folder = folder
        self.server = server
        self.keystone = keystone
        shutil.copy(path("authority.pem"), folder / "ca.pem")

    def access(self) -> VncAccess:
        password = Password(InlineValue(self.keystone.password.encode(), "password"))
        user = KeystoneUser(self.keystone.url, self.keystone.user, password)
        return VncAccess((self.server.url,), keystone=user, tls=Tls(authority=FileValue(path("authority.pem"), "ca")))

    def log_in(self, token: str) -> None:
        """Has `openstack token issue` print a token."""
        program = self.folder / "openstack"
        program.write_text(f'#!/bin/sh\n[ "$*" = "token issue -f value -c id" ] && echo {token}\n')
        program.chmod(0o755)

    async def counts(self) -> list[str]:
        """What the page's commands print that count what is left."""
        script = block(PAGE, "URL=").replace("https://192.0.2.11:8082", self.server.url)
        assert self.server.url in script
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            script,
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(30):
            output, _ = await process.communicate()
        return output.decode().split()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    keystone = Keystone()
    await keystone.start()
    async with serve_contrail_api(tls=server_context(), authentication=TokenAuthentication(keystone)) as server:
        yield Site(tmp_path, server, keystone)
    await keystone.stop()


async def test_what_is_left_on_the_server_is_counted(site: Site) -> None:
    async with connect(site.access()) as client:
        store = await VncStore.open(client, cluster="k8s")
        network = await store.put_network(make_network())
        first, second = [await start_pod(store, [network] * 2, name) for name in ("first", "second")]
        site.log_in(site.keystone.issue())
        assert await site.counts() == ["2", "0"]
        await store.delete_virtual_machine(first.uuid, hold=60)
        assert await site.counts() == ["1", "2"]
        await store.delete_virtual_machine(second.uuid, hold=0)
        await store.shorten_holds([interface.uuid for interface in first.interfaces], hold=0)
        assert await site.counts() == ["0", "0"]
        await store.close()


async def test_nothing_is_counted_where_the_server_does_not_answer(site: Site) -> None:
    """A count of 0 would say that nothing is left."""
    site.log_in("expired")
    assert await site.counts() == []
    await site.server.stop()
    assert await site.counts() == []
