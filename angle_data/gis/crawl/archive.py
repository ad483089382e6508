"""Reads event dumps instead of the API: GH Archive's hourly JSON lines, into the same store.

First all files are searched for the ids of the listed repositories, which survive a renaming; then the events
of these ids are read, whatever the repository was called. Of each issue the youngest version wins, and a
repository has the name of its latest event, in whatever order the files are read. Dumps lack
marks of duplicates and edits, have gaps, and hold texts that were deleted since. Only files in the shape of
2015 and later are read. https://www.gharchive.org
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.crawl import CrawlSummary, open_store
from angle_data.gis.crawl.dump_events import (
    DAMAGED_LINES,
    LINES,
    Archived,
    Unusable,
    decode_event,
    is_other,
    repo_in,
    rows_of_event,
)
from angle_data.gis.crawl.dump_files import Damaged, digest_of, find_dumps, read_dump
from angle_data.gis.crawl.ledger import DUMP_NOTE, dump_record, shown_gaps
from angle_data.gis.crawl.rows import RawRow, Repo
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store
from angle_data.text import counted, stable_hash

_ROWS_A_PAGE = 2_000

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class _Dump:
    """A file, and the digest of its bytes, by which it is known again under any name."""

    path: Path
    digest: str


@dataclass
class _Load:
    """One run over the dumps: which repositories count, by name and id, and the rows of the page."""

    store: Store
    names: frozenset[str]
    since: str | None
    ids: set[int]
    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)
    named: set[tuple[int, str]] = field(default_factory=set)
    present: dict[int, tuple[str, str]] = field(default_factory=dict)  # id -> time of its name, and the name
    rows: list[RawRow] = field(default_factory=list)

    def learn(self, dump: _Dump) -> None:
        """Add the ids of repositories that a file calls by a listed name; a file is searched once a list."""
        list_key = f"{stable_hash(repr(sorted(self.names))):x}"
        note = read_note(self.store, dump.digest)
        found = set(note["learnt"].get(list_key, ()))
        if list_key not in note["learnt"]:
            try:
                for line in filter(None, read_dump(dump.path)):
                    repo = repo_in(line)
                    seems_listed = repo[1] in self.names if repo else not is_other(line)
                    if seems_listed and not (repo and repo[0] in found):
                        found |= self._confirmed(line)
                note["learnt"][list_key] = sorted(found)
                _write_note(self.store, dump.digest, note)
            except Damaged:
                pass  # it is searched again when it is whole
        self.ids |= found

    def _confirmed(self, line: bytes) -> set[int]:
        """The id of an event's repository if it has a listed name; what a quick look finds may be text."""
        try:
            repo = json.loads(line)["repo"]
            return {int(repo["id"])} if repo["name"].lower() in self.names else set()
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return set()

    def is_read(self, dump: _Dump) -> bool:
        """Whether a file was read when all the ids of now were known."""
        known = read_note(self.store, dump.digest)["read"].get(self._part)
        return known is not None and self.ids <= set(known)

    def read(self, dump: _Dump) -> None:
        """Take every line of a file, and note what it held and for which repositories it was read."""
        counts = Counter[str]()
        ids = set(self.ids)
        damage = ""
        try:
            for number, line in enumerate(read_dump(dump.path), start=1):
                try:
                    kind = self._take(line)
                except Unusable as error:
                    kind = error.kind
                    self.firsts.setdefault(kind, f"{dump.path.name}:{number}: {error}")
                counts[kind] += 1
                if len(self.rows) >= _ROWS_A_PAGE:
                    self._flush()
        except Damaged as error:
            damage = str(error)
            log.warning("%s is damaged (%s); everything up to the damage is kept", dump.path, damage)
        self._flush()
        for repo_id, (time, _) in self.present.items():
            self.store.note_named(repo_id, time)
        del counts["blank"]
        note = read_note(self.store, dump.digest)
        note["lines"] = {kind: counts[kind] for kind in LINES if counts[kind]}
        note["damage"] = damage
        if not damage:
            note["read"][self._part] = sorted(ids) if self.names else []
        _write_note(self.store, dump.digest, note)
        self.counts += counts
        self.counts["lines"] += counts.total()
        self.counts["damaged"] += bool(damage)

    @property
    def _part(self) -> str:
        return f"{stable_hash(repr((sorted(self.names), self.since))):x}"

    def _take(self, line: bytes | None) -> str:
        """Add the rows of a line to the page; return its kind."""
        if line is None:
            raise Unusable("too_long")
        if line.isspace():
            return "blank"
        if is_other(line):
            return "other_type"
        event = decode_event(line)
        repo = event["repo"]
        if self.names and repo["id"] not in self.ids and repo["name"].lower() not in self.names:
            return "other_repository"
        if event["created_at"] < (self.since or ""):
            return "before_since"
        found = rows_of_event(event)
        if not self.store.takes_site(found.page):
            return "other_site"
        self._note_name(found, event["created_at"])
        if self.names:
            self.ids.add(found.repo_id)
        self.rows += found.rows
        return "used"

    def _note_name(self, found: Archived, time: str) -> None:
        """Note what a repository was called at a time; its latest name is the present one."""
        last, name = self.present.get(found.repo_id) or self._known_name(found)
        present = found.name if time >= last else name
        if (found.repo_id, found.name) not in self.named or present != name:
            self.store.note_site(found.page)
            self.store.save_repo(Repo(found.repo_id, present, found.name))
            self.named.add((found.repo_id, found.name))
        self.present[found.repo_id] = max(last, time), present

    def _known_name(self, found: Archived) -> tuple[str, str]:
        """Return how the store calls a repository, and the time at which it was called so."""
        known = self.store.repo(found.repo_id)
        return (self.store.named_at(known.id), known.name) if known else ("", found.name)

    def _flush(self) -> None:
        """Write the page."""
        self.store.save(self.rows)
        self.rows.clear()


def read_archives(config: GisConfig) -> CrawlSummary:
    """Read the dumps that `config` names into its store; the counts are those of `load_archives`."""
    names = config.names()
    with open_store(config) as store:
        counts = load_archives(store, config.archives, names, config.start)
        return CrawlSummary(store.path, {}, store.counts(), archive=counts)


def load_archives(
    store: Store, paths: Sequence[Path], names: Sequence[str] = (), since: str | None = None
) -> dict[str, int]:
    """Stream event dumps, or folders of them, into `store`; with `names`, only of these repositories.

    With `since`, a time stamp, only events of that time or later. A file is read once for the same names and
    time, under any name, and again if it was read before the id of a listed repository was known. An
    `InputError` if one does not exist, or if nothing but events of another site than the store's is there.

    Returns how many `lines` there were, and how many of each kind (`LINES`), which add up to them; `damaged`
    files ended early and `known` ones had been read before. What there was none of is left out.
    """
    wanted = frozenset(name.lower() for name in names)
    load = _Load(store, wanted, since, {repo.id for repo in store.repos() if repo.names & wanted})
    files = [file for path in paths for file in find_dumps(path)]
    dumps = [_Dump(file, digest_of(file)) for file in files]
    for dump in dumps:
        _note_name(store, dump)
    if wanted:
        with Progress("dumps searched for the repositories", len(dumps)) as progress:
            for dump in dumps:
                load.learn(dump)
                progress.advance(1, dump.path.name)
    with Progress("dumps read", len(dumps)) as progress:
        for dump in dumps:
            if load.is_read(dump):
                load.counts["known"] += 1
            else:
                load.read(dump)
            progress.advance(1, dump.path.name)
    _warn(load)
    return {name: count for name, count in load.counts.items() if count}


def _warn(load: _Load) -> None:
    """Say what dumps should not hold, and end where all of it is of another site."""
    if load.counts["other_site"] and not load.counts["used"]:
        said = f"holds issues from {load.store.site()}, but the dumps are from another site"
        raise InputError(f"{load.store.path} {said}; give another --out")
    for kind in (*DAMAGED_LINES, "other_site"):
        if load.counts[kind]:
            said = "left out %s, %s; the first: %s"
            first = load.firsts.get(kind, "an address")
            log.warning(said, counted(load.counts[kind], "line"), LINES[kind], first)
    if gaps := shown_gaps(dump_record(load.store)["hours"]):
        log.warning("no dump of these hours: %s", gaps)


def read_note(store: Store, digest: str) -> dict[str, Any]:
    """Return what is known of the files of this digest, which have `names`.

    `learnt` are the ids that they told, by list; `read` the ids that they were read with, by list and time;
    `lines` the number of each kind; `damage` why they could not be read to the end, or empty.
    """
    note = store.meta(f"{DUMP_NOTE}{digest}") or ""
    empty = {"names": [], "learnt": {}, "read": {}, "lines": {}, "damage": ""}
    # Of a store of version 0.1.0 it is not known for which ids a file was read.
    return json.loads(note) if note.startswith("{") else empty


def _write_note(store: Store, digest: str, note: Mapping[str, Any]) -> None:
    store.set_meta(f"{DUMP_NOTE}{digest}", json.dumps(note))


def _note_name(store: Store, dump: _Dump) -> None:
    note = read_note(store, dump.digest)
    if dump.path.name not in note["names"]:
        note["names"] = sorted([*note["names"], dump.path.name])
        _write_note(store, dump.digest, note)
