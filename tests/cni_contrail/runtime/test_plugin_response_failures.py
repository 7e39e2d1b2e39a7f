"""The error of a failed plugin names the plugin and the command, and quotes its output."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import CniRuntimeError, PluginCallError, PluginFailedError, ResultError
from tests.support.scripted_plugins import POD, PluginOutput, Plugins, added, network, result

BRIDGE = network("bridge")


def failure(runtime: Runtime, plugins: Plugins, answer: PluginOutput) -> CniRuntimeError:
    plugins.script("bridge", ADD=answer)
    with pytest.raises(CniRuntimeError) as caught:
        runtime.add(BRIDGE, POD)
    return caught.value


class TestErrorObjects:
    def test_code_message_and_details_are_in_the_error(self, runtime: Runtime, plugins: Plugins) -> None:
        written = {"cniVersion": "1.0.0", "code": 11, "msg": "agent away", "details": "connection refused"}
        error = failure(runtime, plugins, PluginOutput(json.dumps(written), status=1))
        assert isinstance(error, PluginCallError)
        assert (error.plugin, error.command) == ("bridge", "ADD")
        assert (error.code, error.msg, error.details) == (11, "agent away", "connection refused")
        assert str(error) == "plugin bridge failed (ADD): agent away; connection refused (code 11)"

    def test_details_are_optional(self, runtime: Runtime, plugins: Plugins) -> None:
        error = failure(runtime, plugins, PluginOutput('{"code": 100, "msg": "broken"}', status=1))
        assert str(error) == "plugin bridge failed (ADD): broken (code 100)"

    def test_any_nonzero_exit_status_is_a_failure(self, runtime: Runtime, plugins: Plugins) -> None:
        assert isinstance(
            failure(runtime, plugins, PluginOutput('{"code": 5, "msg": "x"}', status=77)), PluginCallError
        )


class TestNoErrorObject:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (PluginOutput(status=3), "plugin bridge failed (ADD, exit status 3) with no error message"),
            (
                PluginOutput("\n", "no route\n", 1),
                "plugin bridge failed (ADD, exit status 1) with no error message: 'no route'",
            ),
            (
                PluginOutput("Traceback", status=1),
                "plugin bridge failed (ADD, exit status 1) and its error message cannot be read: 'Traceback'",
            ),
            (
                PluginOutput("[]", status=1),
                "plugin bridge failed (ADD, exit status 1) and its error message cannot be read: '[]'",
            ),
        ],
    )
    def test_the_error_quotes_the_output(
        self, runtime: Runtime, plugins: Plugins, answer: PluginOutput, message: str
    ) -> None:
        error = failure(runtime, plugins, answer)
        assert isinstance(error, PluginFailedError)
        assert str(error) == message

    @pytest.mark.parametrize("written", [{"msg": "x"}, {"code": "7", "msg": "x"}, {"code": 7}])
    def test_an_object_without_code_or_message_is_no_error_object(
        self, runtime: Runtime, plugins: Plugins, written: dict[str, Any]
    ) -> None:
        error = failure(runtime, plugins, PluginOutput(json.dumps(written), status=1))
        assert "its error message cannot be read" in str(error)

    def test_long_output_is_cut(self, runtime: Runtime, plugins: Plugins) -> None:
        assert len(str(failure(runtime, plugins, PluginOutput("x" * 100_000, status=1)))) < 1200

    def test_a_crash_is_reported_with_its_signal(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.write("bridge", "#!/bin/sh\nkill -SEGV $$\n")
        with pytest.raises(PluginFailedError, match=r"\(ADD, killed by signal 11\) with no error message"):
            runtime.add(BRIDGE, POD)


class TestResults:
    @pytest.mark.parametrize(
        ("output", "quoted"), [("", "its output is empty"), ("done", "'done'"), ("[1]", r"'\[1\]'")]
    )
    def test_success_without_a_result_is_a_failure(
        self, runtime: Runtime, plugins: Plugins, output: str, quoted: str
    ) -> None:
        plugins.script("bridge", ADD=PluginOutput(output))
        with pytest.raises(PluginFailedError, match=rf"plugin bridge succeeded \(ADD\) without a result: {quoted}"):
            runtime.add(BRIDGE, POD)

    def test_a_result_of_another_version_is_a_failure(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added(result("0.4.0")))
        with pytest.raises(
            ResultError, match=r"plugin bridge: result has CNI version '0.4.0', its configuration 1.0.0"
        ):
            runtime.add(BRIDGE, POD)

    @pytest.mark.parametrize("stated", [{}, {"cniVersion": ""}])
    def test_a_result_without_version_has_that_of_the_configuration(
        self, runtime: Runtime, plugins: Plugins, stated: dict[str, str]
    ) -> None:
        plugins.script("bridge", ADD=added({"dns": {"domain": "x"}, **stated}))
        assert runtime.add(BRIDGE, POD) == {"cniVersion": "1.0.0", "dns": {"domain": "x"}}

    def test_output_of_del_and_check_is_ignored(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added(), CHECK=PluginOutput("fine"), DEL=PluginOutput("gone"))
        runtime.add(BRIDGE, POD)
        runtime.check(BRIDGE, POD)
        runtime.delete(BRIDGE, POD)


class TestExecutables:
    def test_a_missing_plugin_is_reported_with_the_directories(self, runtime: Runtime, plugins: Plugins) -> None:
        with pytest.raises(PluginFailedError, match=rf"plugin bridge: not found in {plugins.directory}"):
            runtime.add(BRIDGE, POD)

    def test_an_empty_list_of_directories_is_reported(self) -> None:
        with pytest.raises(PluginFailedError, match="plugin bridge: not found in an empty list"):
            Runtime([]).add(BRIDGE, POD)

    def test_a_directory_is_no_plugin(self, runtime: Runtime, plugins: Plugins) -> None:
        (plugins.directory / "bridge").mkdir()
        with pytest.raises(PluginFailedError, match="bridge: not found in"):
            runtime.add(BRIDGE, POD)

    def test_a_file_without_execute_permission_is_reported(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.write("bridge", "#!/bin/sh\n").chmod(stat.S_IRUSR)
        with pytest.raises(PluginFailedError, match=r"bridge: cannot be executed: Permission denied"):
            runtime.add(BRIDGE, POD)

    def test_a_file_that_is_no_program_is_reported(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.write("bridge", "\x01\x02")
        with pytest.raises(PluginFailedError, match=r"bridge: cannot be executed: Exec format error"):
            runtime.add(BRIDGE, POD)

    def test_a_plugin_need_not_read_its_configuration(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.write("bridge", f"#!/bin/sh\nexec <&-\necho '{json.dumps(result())}'\n")
        big = network({"type": "bridge", "filler": "x" * 1_000_000})
        assert runtime.add(big, POD) == result()

    def test_a_relative_directory_is_made_absolute(
        self, plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plugins.write("bridge", '#!/bin/sh\necho "{\\"dns\\": {\\"domain\\": \\"$0\\"}}"\n')
        monkeypatch.chdir(plugins.directory.parent)
        added_result = Runtime(["bin"], cache_dir=str(tmp_path / "cache")).add(BRIDGE, POD)
        assert added_result["dns"]["domain"] == str(plugins.directory / "bridge")


class TestBeingInstalled:
    """A file that is open for writing, such as by an installer, cannot be executed."""

    def test_a_plugin_being_installed_is_retried(self, runtime: Runtime, plugins: Plugins) -> None:
        plugins.script("bridge", ADD=added())
        writer = os.open(plugins.directory / "bridge", os.O_WRONLY)
        closing = threading.Timer(0.15, os.close, [writer])
        closing.start()
        assert runtime.add(BRIDGE, POD) == result()
        closing.join()

    def test_retries_end_at_the_deadline(self, plugins: Plugins, tmp_path: Path) -> None:
        plugins.script("bridge", ADD=added())
        impatient = Runtime([str(plugins.directory)], cache_dir=str(tmp_path), timeout=0.05)
        with (
            open(plugins.directory / "bridge", "ab"),
            pytest.raises(PluginFailedError, match=r"bridge: cannot be executed: Text file busy"),
        ):
            impatient.add(BRIDGE, POD)
