"""Logs: each record is one line on stderr, as text or JSON, with the pod, container and VMI of its context."""

import json
import logging

import pytest

from contrail_service.logs import log_context, set_up_logs

pytestmark = pytest.mark.usefixtures("restored_logging")


def _fail() -> None:
    raise ValueError("first\nsecond")


def test_a_text_line_has_time_level_logger_and_the_fields_of_its_context(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(json_lines=False, level="info")
    with log_context(pod="ns/web"), log_context(vmi="v1"):
        logging.getLogger("x.y").info("made %s", "eth0")
    logging.getLogger("x.y").info("after")
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(" INFO x.y pod=ns/web vmi=v1: made eth0")
    assert second.endswith(" INFO x.y: after")


def test_a_json_line_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(json_lines=True, level="INFO")
    with log_context(pod="ns/web", container="c1"):
        logging.getLogger("x").warning("two\nlines")
    line = json.loads(capsys.readouterr().err)
    assert line | {"time": ""} == {
        "time": "",
        "level": "WARNING",
        "logger": "x",
        "pod": "ns/web",
        "container": "c1",
        "message": "two\nlines",
    }


def test_a_trace_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(json_lines=False, level="info")
    try:
        _fail()
    except ValueError:
        logging.getLogger("x").exception("broke")
    (line,) = capsys.readouterr().err.splitlines()
    assert "broke\\nTraceback" in line
    assert "ValueError: first\\nsecond" in line


def test_records_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(json_lines=False, level="warning")
    logging.getLogger("x").info("quiet")
    assert capsys.readouterr().err == ""
