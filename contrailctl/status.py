"""`contrailctl status`: readiness of manager and agent, and their number of objects."""

import msgspec

from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError, NotFoundError, ResponseError, UnreachableError
from contrailctl.manager import ManagerApi
from contrailctl.output import Output
from contrailctl.table import format_table

NO_DATAPATH = (
    "The agent's node has no Linux datapath: without a vrouter, the host end of an interface is connected to nothing, "
    "and no traffic passes between pods."
)
_LINUX = "linux"


class ComponentStatus(msgspec.Struct, frozen=True):
    """State of one process: Ready, NotReady or Unreachable; `reasons` say why it is not, or is not for single pods."""

    name: str
    url: str
    state: str
    version: str | None
    reasons: list[str]
    datapath: str | None = None  # of an agent of this project


class _Readiness(msgspec.Struct):
    ready: bool
    reasons: list[str] = []
    datapath: str | None = None


class _Health(msgspec.Struct):
    version: str | None = None


def status(manager: Endpoint, agent: Endpoint, *, own_version: str) -> Output:
    """Returns the state of both; the exit status is 1 unless both are ready."""
    components = [_component("manager", manager), _component("agent", agent)]
    # An unreachable manager would time out once more for each list.
    counts = _counts(ManagerApi(manager)) if components[0].state != "Unreachable" else {}
    rows = [(c.name, c.url, c.state, c.version or "unknown", "; ".join(c.reasons)) for c in components]
    lines = [format_table(("COMPONENT", "URL", "STATE", "VERSION", "REASONS"), rows), ""]
    lines += [f"{kind}: {count}" for kind, count in counts.items()]
    lines.append(f"contrailctl: {own_version}")
    if components[1].datapath != _LINUX:
        lines += ["", NO_DATAPATH]
    ready = all(component.state == "Ready" for component in components)
    document = {"components": components, "counts": counts, "contrailctl": own_version}
    return Output("\n".join(lines), document, status=0 if ready else 1)


def _component(name: str, endpoint: Endpoint) -> ComponentStatus:
    try:
        # Not get(): a process that is not ready answers 503 with its reasons.
        _, body = endpoint.request("/readyz")
        readiness = msgspec.json.decode(body, type=_Readiness)
        version = _version(endpoint)
    except UnreachableError as error:
        return ComponentStatus(name, endpoint.url, "Unreachable", None, [str(error).removeprefix(f"{endpoint.url}: ")])
    except msgspec.DecodeError as error:
        return ComponentStatus(name, endpoint.url, "NotReady", None, [f"/readyz: invalid response: {error}"])
    state = "Ready" if readiness.ready else "NotReady"
    return ComponentStatus(name, endpoint.url, state, version, readiness.reasons, readiness.datapath)


def _version(endpoint: Endpoint) -> str | None:
    try:
        return msgspec.json.decode(endpoint.get("/healthz"), type=_Health).version
    except (NotFoundError, ResponseError, msgspec.DecodeError):
        return None  # other agents have no such page


def _counts(manager: ManagerApi) -> dict[str, str]:
    """Returns the number of objects, with details in parentheses."""
    try:
        summary = manager.summary()
    except ContrailctlError as error:
        return {"objects": f"cannot be counted: {error}"}
    states = ", ".join(f"{count} {state.value}" for state, count in summary.pods.items())
    return {
        "networks": str(summary.networks),
        "pods": f"{sum(summary.pods.values())} ({states})",
        "interfaces": str(summary.interfaces),
    }
