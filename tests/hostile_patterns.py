"""Finds every pattern of a package, makes hostile texts from each, and names those whose work grows too fast.

    python tests/hostile_patterns.py PACKAGE.PREFIX …      (patterns to test beside those, as JSON, on stdin)

A hostile text is what leads to a repetition of the pattern, then what is repeated, thousands of times, then
an odd end. It is tried in the way in which the package uses the pattern: `match` at one place, `search` at
each. A text that takes a while is tried again eight times as long: linear work takes eight times as much,
work that grows with the square sixty-four times.

Time is CPU time of this process: other work on the machine does not count. Prints one line a pattern that
fails; a process that does not end at all is ended by its own limit.
"""

import ast
import importlib
import json
import pkgutil
import re
import resource
import signal
import sys
import time
from pathlib import Path
from re import _constants as sre
from re import _parser

LENGTH, LONGER = 6_000, 8
QUICK_S, MOST_S = 0.003, 1.0
GROWTH, GRACE_S = 24, 0.1
LIMIT_S = 300  # of the whole process
ANYWHERE = {"finditer", "findall", "sub", "subn", "split"}
UNITS = ["a", " ", "\n", "a ", "1", "a.", "-", "(", "[", "<", '"', "\t", "*", "_", "`", "#1 ", "|"]
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
CLASSES = {
    sre.CATEGORY_SPACE: " ", sre.CATEGORY_DIGIT: "1", sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_NOT_WORD: "-",
}  # fmt: skip


class TooLong(Exception):
    """A pattern has used up its time."""


# --- which patterns there are, and how they are used -----------------------------------------------------


def modules_below(prefix):
    """The modules of a package or a module by its name."""
    module = importlib.import_module(prefix)
    yield module
    if hasattr(module, "__path__"):
        for info in pkgutil.walk_packages(module.__path__, f"{prefix}."):
            if not info.name.endswith("__main__"):
                yield importlib.import_module(info.name)


def patterns_in(value, depth=0):
    """The compiled patterns in a value and in what it holds."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from patterns_in(part, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from patterns_in(part, depth + 1)


def inline_in(tree):
    """(how it is used, the pattern, line) of every pattern that stands in the call of a function of `re`."""
    for node in ast.walk(tree):
        call = ast.unparse(node.func) if isinstance(node, ast.Call) and node.args else ""
        if not re.fullmatch(r"re\.(?!escape$|compile$)\w+", call):
            continue
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            given = (*node.args[1:], *(keyword.value for keyword in node.keywords))
            names = [name for name in map(ast.unparse, given) if name.startswith("re.")]
            flags = eval(" | ".join(names) or "0", {"re": re})
            yield call.removeprefix("re."), re.compile(node.args[0].value, flags), node.lineno


def all_patterns(prefixes):
    """(pattern, the ways in which it is used, where it stands) of every pattern."""
    modules = [module for prefix in prefixes for module in modules_below(prefix)]
    sources = {module: Path(module.__file__).read_text(encoding="utf-8") for module in modules}
    everything = "\n".join(sources.values())
    seen = set()
    for module, source in sources.items():
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                if (pattern.pattern, pattern.flags) not in seen:
                    seen.add((pattern.pattern, pattern.flags))
                    where = source if name.startswith("_") else everything
                    uses = set(re.findall(rf"\b{re.escape(name)}\.(\w+)\(", where))
                    yield (
                        pattern,
                        uses & ({"match", "fullmatch", "search"} | ANYWHERE),
                        f"{module.__name__}.{name}",
                    )
        for use, pattern, line in inline_in(ast.parse(source)):
            yield pattern, {use}, f"{module.__name__}:{line}"


# --- hostile texts ----------------------------------------------------------------------------------------


def member(items):
    """A character of a class."""
    if items[0][0] is sre.NEGATE:
        others = re.compile("[" + "".join(map(as_written, items[1:])) + "]")
        return next((sign for sign in 'a 1-.,"\n' if not others.match(sign)), "a")
    kind, value = items[0]
    return (
        chr(value) if kind is sre.LITERAL else chr(value[0]) if kind is sre.RANGE else CLASSES.get(value, "a")
    )


def as_written(item):
    """A part of a class as it stands in a pattern."""
    kind, value = item
    if kind is sre.CATEGORY:
        return {" ": r"\s", "1": r"\d", "a": r"\w", "-": r"\W"}.get(CLASSES[value], r"\w")
    return re.escape(chr(value)) if kind is sre.LITERAL else "-".join(re.escape(chr(end)) for end in value)


def within(kind, value):
    """The patterns inside a part of a pattern."""
    if kind is sre.BRANCH:
        return list(value[1])
    inside = {sre.SUBPATTERN: 3, sre.ASSERT: 1, sre.ASSERT_NOT: 1, **dict.fromkeys(REPEATS, 2)}.get(kind)
    return [value] if kind is sre.ATOMIC_GROUP else [] if inside is None else [value[inside]]


def sample(parts):
    """A short text that the parts of a pattern match, or nearly."""
    said = ""
    for kind, value in parts:
        if kind is sre.LITERAL:
            said += chr(value)
        elif kind in (sre.ANY, sre.NOT_LITERAL):
            said += "a"
        elif kind is sre.IN:
            said += member(value)
        elif kind not in (sre.ASSERT, sre.ASSERT_NOT) and (inner := within(kind, value)):
            said += sample(inner[0]) * (min(max(value[0], 1), 3) if kind in REPEATS else 1)
    return said


def repeated(parts, before=""):
    """(what leads there, what is repeated) of every repetition."""
    for kind, value in parts:
        if kind in REPEATS and value[1] > 1:
            yield before, sample(value[2])
            for inner_kind, inner in value[2]:
                for one in within(inner_kind, inner):
                    for alternative in one[0][1][1] if one and one[0][0] is sre.BRANCH else [one]:
                        yield before, sample(alternative)
        for one in within(kind, value):
            yield from repeated(one, before)
        before = (before + sample([(kind, value)]))[-200:]


def hostile(pattern):
    """(beginning, unit) of the texts for a pattern."""
    parts = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found = {(before, unit) for before, unit in repeated(parts) if unit}
    found |= {("", before + unit) for before, unit in found} | {("", sample(parts) or "a")}
    return sorted(found | {("", unit) for unit in UNITS})


def text_of(before, unit, length):
    return (before + unit * (length // len(unit)))[:length] + "\0!"


# --- trying -----------------------------------------------------------------------------------------------


def took(pattern, use, text, most_s):
    """The CPU seconds of one use; `TooLong` beyond the most."""
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, most_s)
    try:
        if use in ANYWHERE:
            for _ in pattern.finditer(text):
                pass
        else:
            getattr(pattern, use)(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - started


def fails(pattern, uses):
    """The first hostile text for which the work of a pattern grows too fast, None if there is none."""
    # What only passes through other hands may be used in any way.
    uses = sorted({"finditer" if use in ANYWHERE else use for use in uses} or {"finditer"})
    for before, unit in hostile(pattern):
        for use in uses:
            try:
                least_s = took(pattern, use, text_of(before, unit, LENGTH), MOST_S)
                if least_s > QUICK_S:
                    least_s = min(least_s, took(pattern, use, text_of(before, unit, LENGTH), MOST_S))
                    took(pattern, use, text_of(before, unit, LONGER * LENGTH), GROWTH * least_s + GRACE_S)
            except TooLong:
                return f"{use} of {before[:30]!r}, then {unit[:30]!r} again and again"
    return None


def too_long(*_):
    raise TooLong


def main():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    signal.signal(signal.SIGVTALRM, too_long)
    planted = [
        (re.compile(text), {"search"}, f"planted {text}") for text in json.loads(sys.stdin.read() or "[]")
    ]
    tried = 0
    for pattern, uses, where in [*all_patterns(sys.argv[1:]), *planted]:
        tried += 1
        if found := fails(pattern, uses):
            print(f"{where}: {found}", flush=True)
    print(f"{tried} patterns tried", file=sys.stderr)


if __name__ == "__main__":
    main()
