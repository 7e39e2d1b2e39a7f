"""Different containers can be attached concurrently: one runtime serves many threads."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from tests.support.scripted_plugins import POD, Plugins, network

ECHO = """#!/bin/sh
cat > /dev/null
echo "{\\"cniVersion\\": \\"1.0.0\\", \\"dns\\": {\\"domain\\": \\"$CNI_CONTAINERID\\"}}"
"""

CONTAINERS = [dataclasses.replace(POD, container_id=f"c{number}") for number in range(24)]
ECHOED = network("echo")


def test_concurrent_adds_get_their_own_results(runtime: Runtime, plugins: Plugins) -> None:
    plugins.write("echo", ECHO)

    def add(attachment: Attachment) -> str:
        domain: str = runtime.add(ECHOED, attachment)["dns"]["domain"]
        return domain

    with ThreadPoolExecutor(max_workers=8) as pool:
        assert list(pool.map(add, CONTAINERS)) == [attachment.container_id for attachment in CONTAINERS]
    for attachment in CONTAINERS:
        entry = runtime.cached(ECHOED, attachment)
        assert entry is not None
        assert entry.result["dns"]["domain"] == attachment.container_id


def test_a_failed_add_does_not_affect_concurrent_ones(runtime: Runtime, plugins: Plugins) -> None:
    failure = json.dumps({"code": 7, "msg": "not this one"})
    choosy = f"#!/bin/sh\nif [ $CNI_CONTAINERID = c3 ]; then echo '{failure}'; exit 1; fi\n" + ECHO.partition("\n")[2]
    plugins.write("echo", choosy)

    def attached(attachment: Attachment) -> bool:
        return isinstance(runtime.add(ECHOED, attachment), dict)

    with ThreadPoolExecutor(max_workers=8) as pool:
        futures = [pool.submit(attached, attachment) for attachment in CONTAINERS]
        failures = [str(future.exception()) for future in futures if future.exception()]
    assert failures == ["plugin echo failed (ADD): not this one (code 7)"]
