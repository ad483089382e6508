import logging
import signal
import subprocess
import sys

import pytest
import typer
from programs import python

from angle_data.calling.program import run_app
from angle_data.console import Progress, configure_logging
from angle_data.errors import CredentialsError, InputError, MissingExtraError, StoppedError


def raising(error):
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @app.command()
    def work():
        raise error

    return lambda: app([])


FREE = "choose another place, or make room"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CredentialsError("set OPENAI_API_KEY"), 1, "error: set OPENAI_API_KEY"),
        (StoppedError("budget reached; run again"), 75, "budget reached; run again"),
        (PermissionError(13, "Permission denied", "runs/x"), 1, f"error: runs/x: Permission denied; {FREE}"),
        (OSError(28, "No space left on device"), 1, f"error: No space left on device; {FREE}"),
        (OSError(5, "Input/output error"), 1, "error: Input/output error; check the disk"),
        (MemoryError(), 1, "error: out of memory; give it more, or less to do at once"),
        (InputError("a\x1b[2Jb\x1b]0;title\x07c\r\x9b31md\u202e"), 1, "error: abc 31md"),
        (KeyboardInterrupt(), 130, "interrupted; run the same command again to go on"),
        (KeyboardInterrupt("all is kept"), 130, "interrupted; all is kept"),
        (MissingExtraError("fit", "x"), 1, 'error: fit needs the "x" extra: pip install -e ".[x]"'),
    ],
)
def test_errors_become_one_line_and_the_documented_exit_code(error, code, line, capsys):
    with pytest.raises(SystemExit) as stop:
        run_app(raising(error), "prog")
    assert stop.value.code == code
    assert capsys.readouterr() == ("", f"prog: {line}\n")


@pytest.mark.parametrize("error", [ZeroDivisionError(), ConnectionResetError(104, "reset by peer")])
def test_a_defect_keeps_its_traceback(error):
    with pytest.raises(type(error)):
        run_app(raising(error), "prog")


def test_a_reader_that_goes_away_is_no_error():
    program = """
import typer
from angle_data.calling.program import run_app
app = typer.Typer(add_completion=False)
@app.command()
def work():
    for number in range(200_000):
        print(number)
run_app(app, 'prog')
"""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **streams) as writer:
        assert writer.stdout.readline() == b"0\n"
        writer.stdout.close()
        assert (writer.stderr.read(), writer.wait()) == (b"", 0)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_end_the_program_like_a_ctrl_c(name):
    raises = f"lambda: signal.raise_signal(signal.{name})"
    done = python("-c", f"import signal, angle_data.calling.program as c; c.run_app({raises}, 'prog')")
    assert (done.returncode, done.stderr) == (130, "prog: interrupted; run the same command again to go on\n")


@pytest.mark.parametrize("outside", [signal.SIG_DFL, signal.SIG_IGN])
def test_what_a_sigterm_does_outside_the_program_stays_so(outside):
    before, inside = signal.signal(signal.SIGTERM, outside), []
    try:
        run_app(lambda: inside.append(signal.getsignal(signal.SIGTERM)), "prog")
        assert signal.getsignal(signal.SIGTERM) is outside
        assert (inside == [outside]) == (outside is signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"quiet": True}, "warning\n"),
        ({}, "info\nwarning\n"),
        ({"verbose": True}, "debug\ninfo\nwarning\n"),
    ],
)
def test_quiet_and_verbose_say_what_is_logged(options, shown, capsys):
    configure_logging(**options)
    log = logging.getLogger("angle.test")
    log.debug("debug")
    log.info("info")
    log.warning("warning")
    assert capsys.readouterr() == ("", shown)


@pytest.mark.parametrize(
    ("total", "left"), [(None, ""), (8, ", 0 s left"), (14, ", 1 min left"), (800, ", 2 h 12 min left")]
)
def test_what_was_done_before_counts_as_done_but_not_for_the_speed(monkeypatch, capsys, total, left):
    now, of = [0.0], f"/{total}" if total else ""
    monkeypatch.setattr("angle_data.console.time.monotonic", lambda: now[0])
    configure_logging()
    with Progress("work", total) as progress:
        now[0] = 20.0
        progress.skip(6)
        progress.advance(2, note="1 failed")
    assert capsys.readouterr().err == f"work: 8{of} (0.1/s{left}) 1 failed\n"


def test_log_lines_steer_no_terminal(capsys):
    configure_logging()
    logging.getLogger("angle.x").warning("model %s\nsecond", "\x1b]52;c;cm0=\x07big\x1b[1A\r")
    assert capsys.readouterr().err == "model big \nsecond\n"
