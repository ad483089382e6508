"""RESULTS.md from results/*.json, one file for each experiment that a claim rests on.

    python benchmarks/results.py            # write RESULTS.md; tests/test_results.py fails if it is stale

Fields of a result, all of them required:

* group: the section that it stands in; claim: one sentence
* figures: objects of name, value and spread ("" where none is known)
* seeds: a list of them, or in words what was repeated
* commands: run from the root of the repository; DATA, MINILM and MPNET stand for paths of the reader's own
* commit: at which it was run; reported_in: the commit that brought the figures; processor; date
* data: what was measured on; peers: what it stands beside
* caveat: what else must be known
* log: the page with rule, tables and decision; rests_on_it: the pages that quote it

What is not known is "not recorded". A result without a command says in its caveat that nobody can repeat it.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER, PAGE = HERE / "results", HERE / "RESULTS.md"
FIELDS: dict[str, type | tuple[type, ...]] = {
    "group": str,
    "claim": str,
    "figures": list,
    "seeds": (list, str),
    "commands": list,
    "commit": str,
    "reported_in": str,
    "processor": str,
    "date": str,
    "data": str,
    "peers": list,
    "caveat": str,
    "log": str,
    "rests_on_it": list,
}
MAY_BE_EMPTY = {"commands", "peers", "caveat", "rests_on_it"}
GROUPS = ("Models", "Ensembles", "Training", "Labelling", "Duplicate issues")
USUAL = "2 shared CPU cores, model not recorded"
HEAD = f"""# Results

Written by `python benchmarks/results.py` from `results/*.json`; a test fails when it is stale. Each file also
has the data, the peers and the pages that rest on it. Models: Spearman × 100 on test pairs, mean ± standard
deviation over the seeds; [a, b] is a 95 % interval, (a-b) a range. Where nothing else stands: {USUAL};
the commit of the run was not recorded, and the commit named is the one that reported it. The line under each
result leads to rule, tables and decision. Negative results are in the [log](log/README.md).
"""


def load() -> dict[str, dict[str, Any]]:
    """Return every result by its name.

    Raises:
        SystemExit: A result lacks a field, or has a wrong one.
    """
    results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    wrong = [f"{name}.json: {problem}" for name, result in results.items() for problem in problems(result)]
    if wrong:
        sys.exit("\n".join(sorted(wrong)))
    return results


def problems(result: dict[str, Any]) -> list[str]:
    """Return what is wrong with a result, in words."""
    found = [f"no field {name}" for name in FIELDS if name not in result]
    found += [f"unknown field {name}" for name in result if name not in FIELDS]
    for name, kind in FIELDS.items():
        if name in result and not isinstance(result[name], kind):
            found.append(f"{name} has a wrong type")
        elif name in result and not result[name] and name not in MAY_BE_EMPTY:
            found.append(f"{name} is empty")
    for figure in result.get("figures", []):
        if set(figure) != {"name", "value", "spread"} or not isinstance(figure["value"], int | float):
            found.append(f"{figure} is not an object of name, value (a number) and spread")
    if result.get("group") not in GROUPS:
        found.append(f"group is none of {', '.join(GROUPS)}")
    if not result.get("commands") and not result.get("caveat"):
        found.append("without a command, caveat must say so")
    return found


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return RESULTS.md."""
    ordered = sorted(results, key=lambda name: (GROUPS.index(results[name]["group"]), name))
    parts = [HEAD]
    for group, names in groupby(ordered, key=lambda name: str(results[name]["group"])):
        parts.append(f"## {group}\n")
        parts += [section(name, results[name]) for name in names]
    return "\n".join(parts)


def section(name: str, result: dict[str, Any]) -> str:
    """Return what the page says about one result."""
    figures = "; ".join(
        f"{figure['name']} **{figure['value']:g}** {figure['spread']}".rstrip()
        for figure in result["figures"]
    )
    lines = [f"### {name}\n", f"{result['claim']} {figures}. {result['caveat']}".rstrip() + "\n"]
    lines.append(f"[{origin(result)}](log/{result['log']}.md)\n")
    if result["commands"]:
        lines += ["```bash", *result["commands"], "```\n"]
    return "\n".join(lines)


def origin(result: dict[str, Any]) -> str:
    """Return seeds, date, commit and, where it is another than usual, the processor."""
    seeds = result["seeds"]
    if isinstance(seeds, list):
        seeds = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    parts = ["seeds not recorded" if seeds == "not recorded" else seeds]
    known = result["commit"] != "not recorded"
    commit = f"run at {result['commit']}" if known else f"commit {result['reported_in']}"
    parts += [commit] if result["date"] == "not recorded" else [result["date"], commit]
    if result["processor"] != USUAL:
        unknown = result["processor"] == "not recorded"
        parts.append("processor not recorded" if unknown else result["processor"])
    return "; ".join(parts)


def main() -> None:
    """Write the page."""
    raw = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(description=__doc__, formatter_class=raw).parse_args()
    PAGE.write_text(page(load()), encoding="utf-8")


if __name__ == "__main__":
    main()
