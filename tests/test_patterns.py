"""No compiled pattern of either package takes more than the square of a text's length.

What is run are all patterns that the modules hold, on repetitions of what each looks for and of every usual
character, matched, searched and to the end. An exponential or cubic pattern passes the limit by far: for
these lengths it takes from minutes to years. `answers/test_linear.py` measures the functions that use them.
"""

import subprocess
import sys

LENGTH, LIMIT_S = 1_500, 400
CODE = f"""
import ast, pkgutil, re, sys
import re._parser as parser
from importlib import import_module

UNITS = [" ", "\\t", "\\n", "a", "a ", "a.", "1", "1.", "\\xa0", "\\u4f60", "a@", "a:a@", "http://", "I ", "\\x1b[", "&#"]
UNITS += list("-*_#([{{<>\\"'`|:/.,@!?=&;~^$%+")
NESTED = (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT)

def patterns(value, depth=0):
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from patterns(item, depth + 1)
    elif depth < 4 and isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from patterns(item, depth + 1)
    elif depth < 4 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from patterns(getattr(value, name, None), depth + 1)

def literals(tree):
    run = ""
    for op, value in tree:
        if op is parser.LITERAL:
            run += chr(value)
            continue
        yield run
        run = ""
        if op in NESTED:
            yield from literals(value[2])
        elif op is parser.SUBPATTERN:
            yield from literals(value[3])
        elif op is parser.BRANCH:
            for branch in value[1]:
                yield from literals(branch)
        elif op is parser.ATOMIC_GROUP:
            yield from literals(value)
        elif op in (parser.ASSERT, parser.ASSERT_NOT):
            yield from literals(value[1])
    yield run

def try_out(pattern):
    found = sorted(filter(None, set(literals(parser.parse(pattern.pattern, pattern.flags)))), key=len)
    found = [*found[:8], *found[-8:]]
    for unit in dict.fromkeys([*UNITS, *found, *(text + " " for text in found)]):
        body = (unit * ({LENGTH} // len(unit) + 1))[:{LENGTH}]
        for text in (body, body + "\\0", "- a " + body):
            if isinstance(pattern.pattern, bytes):
                continue
            pattern.fullmatch(text)
            for _ in pattern.finditer(text):
                pass

seen = {{}}
for package in ("angle_data", "angle_train"):
    for info in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        if not info.name.endswith("__main__"):
            for name, value in list(vars(import_module(info.name)).items()):
                if not name.startswith("__"):
                    for pattern in patterns(value):
                        seen.setdefault((pattern.pattern, pattern.flags), (pattern, info.name + "." + name))
for pattern, name in seen.values():
    print(name, flush=True)  # the last one is what did not end
    if isinstance(pattern.pattern, str):
        try_out(pattern)
print(len(seen), "patterns")
"""


def test_no_pattern_takes_more_than_the_square_of_the_length():
    try:
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as late:
        names = (late.stdout or b"").decode().split()
        raise AssertionError(f"{names[-1:]} does not come to an end") from None
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-2]) > 200
