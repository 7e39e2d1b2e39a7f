"""Schema of kubeconfig files (v1); other keys are ignored."""

from typing import Any

import msgspec


class _Section(msgspec.Struct, frozen=True, rename="kebab"):
    pass


class Extension(_Section, frozen=True):
    """A named extension of any content."""

    name: str
    extension: Any = None


class Cluster(_Section, frozen=True):
    """How to reach a server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[Extension, ...] = ()


class EnvironmentVariable(_Section, frozen=True):
    """An environment variable of an exec plugin."""

    name: str
    value: str


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """An exec plugin: a command that prints credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[EnvironmentVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(_Section, frozen=True):
    """Credentials of a client. The last four fields are read only to reject them."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    exec: ExecConfig | None = None

    username: str = ""
    password: str = ""
    auth_provider: Any = None
    as_: str = msgspec.field(name="as", default="")


class Context(_Section, frozen=True):
    """A cluster and the user that connects to it."""

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
    """A kubeconfig file."""

    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[NamedUser, ...] = ()
    contexts: tuple[NamedContext, ...] = ()
    current_context: str = ""
