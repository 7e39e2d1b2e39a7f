"""What is read of a kubeconfig file (kubeconfig v1); keys that are not here do not matter to us."""

from typing import Any

import msgspec


class _Section(msgspec.Struct, frozen=True, rename="kebab"):
    pass


class Extension(_Section, frozen=True):
    """A named piece of anything."""

    name: str
    extension: Any = None


class Cluster(_Section, frozen=True):
    """A server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[Extension, ...] = ()


class Variable(_Section, frozen=True):
    """A variable of a plugin's environment."""

    name: str
    value: str


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """A command that gives credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(_Section, frozen=True):
    """Who asks. The keys of the last lines are known in order to be refused."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    exec: Plugin | None = None

    username: str = ""
    password: str = ""
    auth_provider: Any = None
    as_: str = msgspec.field(name="as", default="")


class Context(_Section, frozen=True):
    """A server and who asks it."""

    cluster: str
    user: str = ""


class NamedCluster(_Section, frozen=True):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster


class NamedUser(_Section, frozen=True):
    """An entry of `users`."""

    name: str
    user: User


class NamedContext(_Section, frozen=True):
    """An entry of `contexts`."""

    name: str
    context: Context


class Kubeconfig(_Section, frozen=True):
    """A file."""

    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[NamedUser, ...] = ()
    contexts: tuple[NamedContext, ...] = ()
    current_context: str = ""
