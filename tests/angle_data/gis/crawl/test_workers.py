"""Work on several cores. The functions are those of Python: a fresh process imports no test."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from angle_data.errors import AngleError
from angle_data.gis.crawl.workers import in_order, in_processes

ENDLESS = """
from functools import partial
from itertools import repeat
from angle_data.gis.crawl.workers import in_processes
for _ in in_processes(2, partial, (eval,), repeat("__import__('time').sleep(0.01)")):
    print("begun", flush=True)
"""


def test_results_come_in_the_order_of_the_work_and_little_is_taken_ahead():
    taken, last = [], threading.Event()

    def items():
        for number in range(20):
            taken.append(number)
            yield number

    def work(number):
        if number == 0:
            assert last.wait(60)  # the first ends after the third
        if number == 2:
            last.set()
        return number * number

    with ThreadPoolExecutor(3) as pool:
        results = in_order(pool, work, items(), ahead=3)
        assert next(results) == 0
        assert len(taken) == 4
        assert list(results) == [number * number for number in range(1, 20)]


def test_processes_give_results_in_order():
    assert list(in_processes(2, partial, (pow, 2), range(6))) == [1, 2, 4, 8, 16, 32]


def test_a_killed_process_is_told_in_one_line():
    with pytest.raises(
        AngleError, match="was killed, perhaps for want of memory, or could not start; try --workers 1"
    ):
        list(in_processes(1, partial, (os._exit,), [3]))


def test_what_a_process_cannot_begin_with_is_said_as_it_is():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(in_processes(1, open, ("nowhere",), [3]))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_processes_end_with_the_one_that_began_them(number):
    begun = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert begun.stdout.readline() == b"begun\n"
    if number == signal.SIGINT:
        os.killpg(begun.pid, number)  # as a terminal does: all get it
    else:
        begun.kill()
    _, errors = begun.communicate()  # ends when the last process has closed them
    assert begun.returncode == -number
    assert errors.count(b"KeyboardInterrupt") == (number == signal.SIGINT)
