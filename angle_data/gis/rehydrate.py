"""Fetches the texts of a data set without texts again, and leaves out what was deleted since.

Texts are cleaned as in the build. What was fetched is kept beside the new data set until that is complete, so
that a stopped run goes on; a complete one asks for everything anew.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.build.card import IDS_NOTE, columns_table
from angle_data.gis.build.clean import Texts
from angle_data.gis.build.dataset import COLUMNS, FORMS, IDS_COLUMNS, PairRow, write_forms
from angle_data.gis.build.evidence import Node
from angle_data.gis.crawl.github import GitHubClient, Refused
from angle_data.gis.crawl.listings import Crawler
from angle_data.gis.crawl.lookups import GONE, look_up, resolve_repo
from angle_data.gis.crawl.store import Store
from angle_data.jsonl import read_jsonl
from angle_data.locking import hold
from angle_data.publish.dataset import data_file, write_rows
from angle_data.splits import SPLITS
from angle_data.tables import read_table
from angle_data.text import content_id

log = logging.getLogger("angle")

_STORE = "rehydrate.sqlite"
_SHARED = [name for name in COLUMNS if name in IDS_COLUMNS]  # with and without texts
_ADDRESS = re.compile(r".*/([^/]+/[^/]+)/issues/(\d+)$")


def rehydrate_dataset(data: Path, out: Path, client: GitHubClient) -> dict[str, Any]:
    """Write `out`/dataset with the texts that GitHub still has of the data set of ids in `data`.

    `data` is its folder, or the output folder of the `gis` that wrote it.
    Returns its folder, and how many `rows` were read, `kept`, `dropped` by reason and `edited` (kept, with
    another text) in how many `requests`. Reasons: `gone`, an issue was deleted, hidden or moved, or its whole
    repository was; `empty`, nothing is left of its text. An `InputError` if `out` has a data set already.
    """
    data = _folder_of(data)
    wanted: defaultdict[str, set[int]] = defaultdict(set)
    for _, row in read_dataset(data):
        if "hash1" not in row:
            raise InputError(f"{data} has its texts already; rehydrate is for data sets made with --ids-only")
        for name, number in _ends(row):
            wanted[name].add(number)
    if (out / "dataset").exists() or (out / "data").exists():
        said = f"--out {out} already holds a data set"
        raise InputError(f"{said}; choose another --out, or delete it to fetch everything again")
    if not client.authenticated:
        log.warning("no token in %s: GitHub allows 60 requests an hour", client.token_env)
    with hold(out):
        with Store.open(out / _STORE) as store:
            with Progress("repositories", len(wanted)) as progress:
                crawler = Crawler(client, store, progress)
                for name, numbers in sorted(wanted.items()):
                    try:
                        repo = store.named(name) or resolve_repo(crawler, name)
                    except Refused as error:
                        if error.status not in GONE:
                            raise
                        log.warning("%s: %s; its pairs are left out", name, error)
                    else:
                        look_up(crawler, repo, numbers, graphql=client.authenticated)
                    crawler.tell(name, done=1)
            summary = _write(data, out, store, client)
        (out / _STORE).unlink()
    return summary


def _folder_of(data: Path) -> Path:
    """Return the folder of the data set: that inside `data`, if it is the output folder of a `gis`."""
    inside = data / "dataset"
    return inside if inside.is_dir() and not (data / "data").exists() else data


def _ends(row: PairRow) -> Iterator[tuple[str, int]]:
    """Yield repository and number of both issues of a row."""
    for column in ("url1", "url2"):
        match = _ADDRESS.match(row[column])
        if match is None:
            raise InputError(f"{row[column]!r} is not the URL of an issue; the data set is damaged")
        yield match[1], int(match[2])


def _write(data: Path, out: Path, store: Store, client: GitHubClient) -> dict[str, Any]:
    """Write the rows whose two issues are there, and their card."""
    forms = read_forms(data)
    ids = {repo.asked: repo.id for repo in store.repos()}
    texts = Texts(store, {ids[name]: lines for name, lines in forms.items() if name in ids})
    counts: Counter[str] = Counter()
    kept: dict[str, list[PairRow]] = {name: [] for name in SPLITS}
    for split, row in read_dataset(data):
        nodes = [(ids[name], number) for name, number in _ends(row) if name in ids]
        found = _state(nodes, store, texts)
        counts[found] += 1
        if found == "kept":
            kept[split].append(row)
            hashes = [content_id(texts.get(node)) for node in nodes]
            counts["edited"] += hashes != [row["hash1"], row["hash2"]]
    if not counts["kept"]:
        raise InputError(f"nothing of {data} is left on {client.api_url}; check --api-url")

    def with_texts(rows: list[PairRow]) -> Iterator[PairRow]:
        for row in rows:
            text1, text2 = (texts.get((ids[name], number)) for name, number in _ends(row))
            found = {"text1": text1, "text2": text2, **row}
            yield {name: found[name] for name in COLUMNS}

    dropped = {name: counts[name] for name in ("gone", "empty") if counts[name]}
    lost = ", ".join(f"{name} {count:,}" for name, count in dropped.items()) or "none"
    note = f"The texts were fetched again. Pairs left out since: {lost}; with a text edited since: "
    note += f"{counts['edited']:,}. The sizes below are those before.\n\n"

    def card(folder: Path) -> str:
        write_forms(folder, forms)
        path = data / "README.md"
        readme = path.read_text(encoding="utf-8") if path.exists() else ""
        readme = readme.replace(columns_table(IDS_COLUMNS), columns_table(COLUMNS))
        return readme.replace(IDS_NOTE, note) if IDS_NOTE in readme else readme + note

    dataset = out / "dataset"
    write_rows(dataset, {name: with_texts(rows) for name, rows in kept.items() if rows}, COLUMNS, card)
    total = counts["kept"] + sum(dropped.values())
    figures = {"rows": total, "kept": counts["kept"], "dropped": dropped, "edited": counts["edited"]}
    return {"dataset": dataset, **figures, "requests": client.spent.total()}


def _state(nodes: list[Node], store: Store, texts: Texts) -> str:
    """Whether a pair is `kept`, `gone` or `empty`; `nodes` are those whose repository is there."""
    issues = [issue for repo_id, number in nodes for issue in store.issues(repo_id, [number])]
    if sum(not issue.gone and not issue.is_pull for issue in issues) < 2:
        return "gone"
    return "kept" if all(texts.get(node) for node in nodes) else "empty"


def read_forms(directory: Path) -> dict[str, dict[str, int]]:
    """Return what `write_forms` wrote; nothing where there is no such file."""
    found: dict[str, dict[str, int]] = {}
    for _, row in read_jsonl(directory / FORMS) if (directory / FORMS).exists() else ():
        found.setdefault(row["repo"], {})[row["line"]] = row["issues"]
    return found


def read_dataset(directory: Path) -> Iterator[tuple[str, PairRow]]:
    """Yield (split, row) of a data set of issue pairs; an `InputError` if the folder holds none."""
    splits = [split for split in sorted(SPLITS) if (directory / data_file(split)).exists()]
    if not splits:
        said = f"{directory} holds no data set (data/*.parquet)"
        raise InputError(f"{said}; build one first, or check the path")
    for split in splits:
        for _, row in read_table(directory / data_file(split), require=_SHARED):
            yield split, row
