"""Options given more than once, interrupts and errors of the system, as every command takes them."""

import errno
import signal

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from angle_data.calling.interrupts import caught
from angle_data.calling.program import run_app
from angle_data.cli import app as data_app
from angle_train.cli import app as train_app


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


def one_value_options(command, *path):
    """The words before each option of a command, or of its own commands, that takes one value."""
    for parameter in command.params:
        takes_one = not (getattr(parameter, "multiple", False) or getattr(parameter, "is_flag", False))
        if parameter.param_type_name == "option" and takes_one:
            yield [*path, parameter.opts[-1]]
    for name, inner in getattr(command, "commands", {}).items():
        yield from one_value_options(inner, *path, name)


@pytest.mark.parametrize(("app", "least"), [(data_app, 120), (train_app, 40)])
def test_an_option_that_takes_one_value_is_given_once(app, least):
    every = list(one_value_options(get_command(app)))
    assert len(every) >= least
    for *path, flag in every:
        for more in ([], [flag, "3"]):
            done = CliRunner().invoke(app, [*path, flag, "1", f"{flag}=2", *more])
            assert done.exit_code == 2
            assert done.output.splitlines()[-1] == f"Error: {flag} is given more than once; give it once"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "--set", "epochs=1", "--set", "seed=2", "--data", "a", "--data", "b", "--quiet", "--quiet"],
        ["eval", "--model", "a", "--model", "b"],
        ["eval", "--split", "a", "--split", "b", "--help"],
    ],
)
def test_what_can_be_repeated_is_not_given_more_than_once(arguments):
    assert "more than once" not in CliRunner().invoke(train_app, arguments).output


def test_arguments_without_a_flag_can_be_repeated():
    done = CliRunner().invoke(data_app, ["ensemble", "a", "b", "--purpose", "topics", "--out", "c"])
    assert done.exit_code == 1
    assert "a holds no candidates.jsonl" in str(done.exception)
