"""Interrupts and errors of the system, as every command takes them."""

import errno
import signal

import pytest

from angle_data.calling.interrupts import caught
from angle_data.calling.program import run_app


@pytest.fixture
def outside():
    """The signals that reach a handler outside; the one before is put back."""
    reached = []
    before = signal.signal(signal.SIGINT, lambda number, frame: reached.append("outside"))
    yield reached
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("once", "expected"), [(True, ["inside", "outside"]), (False, ["inside", "inside"])])
def test_a_second_signal_does_what_it_does_outside_only_if_the_first_alone_is_caught(outside, once, expected):
    with caught(lambda: outside.append("inside"), once=once):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert outside == expected


def failing(number):
    def app():
        raise OSError(number, "said by the system")

    return app


def test_a_full_disk_is_one_line_also_where_no_file_is_named(capsys):
    with pytest.raises(SystemExit) as stop:
        run_app(failing(errno.ENOSPC), "angle-data")
    assert stop.value.code == 1
    said = "angle-data: error: said by the system; choose another place, or make room\n"
    assert capsys.readouterr().err == said


def test_an_error_of_a_connection_keeps_its_traceback():
    with pytest.raises(OSError, match="said by the system"):
        run_app(failing(errno.ECONNRESET), "angle-data")
