"""The grading page from a small server on this machine, which saves every grade as it is given.

The sheet holds all grades at any time: killed and started again, the page goes on with the first pair that
has none. Nobody but this machine reaches the server (127.0.0.1), and on it only who has the token of the
address.
"""

from __future__ import annotations

import logging
import secrets
import threading
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from angle_data.errors import InputError
from angle_data.jsonl import loads
from angle_data.look.grade import (
    SHEET_COLUMNS,
    check_derived,
    finish_grading,
    graded_pairs,
    page_words,
    write_sheet,
)
from angle_data.look.show import page_text
from angle_data.tables import read_table, unguarded

log = logging.getLogger("angle.grade")

HOST = "127.0.0.1"
_GRADES = tuple(half / 2 for half in range(11))
_LONGEST_BODY = 1 << 16  # bytes: more than all grades of a page take


@dataclass(slots=True)
class Grading:
    """The sheet that is being graded; `rows` are its rows as they stand there, with all their columns."""

    sheet: Path
    purpose: str | None
    rows: list[dict[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        check_derived(self.sheet, graded_pairs(self.sheet))
        self.rows = [row for _, row in read_table(self.sheet, require=(*SHEET_COLUMNS, "split"))]

    @property
    def graded(self) -> int:
        """How many pairs have a grade."""
        return sum(bool(row["score"].strip()) for row in self.rows)

    def page(self) -> str:
        """Return the page, with the grades so far."""
        columns = (*SHEET_COLUMNS[:2], "split")
        done = {
            n: float(s.replace(",", ".")) for n, row in enumerate(self.rows) if (s := row["score"].strip())
        }
        content = {
            "title": self.sheet.stem,
            "pairs": [[unguarded(row[name]) for name in columns] for row in self.rows],
            "served": True,
            "grades": done,
            "verdict": False,
        }
        return page_text("grade", content | page_words(self.purpose), served=True)

    def save(self, grades: Mapping[str, Any]) -> None:
        """Put grades, by the number of their pair, into the sheet; a `ValueError` if one cannot be."""
        with self._lock:
            for number, grade in grades.items():
                known = number.isdecimal() and int(number) < len(self.rows)
                if not known or isinstance(grade, bool) or grade not in _GRADES:
                    raise ValueError(f"no pair {number}, or no grade: {grade!r}")
            for number, grade in grades.items():
                self.rows[int(number)]["score"] = f"{grade:g}"
            head = list(self.rows[0])
            write_sheet(self.sheet, [head, *([row[name] for name in head] for row in self.rows)])


def grade_in_browser(sheet: Path, purpose: str | None, *, browser: bool = True) -> dict[str, Any]:
    """Serve the page of a sheet until it is finished there; then write what the grades give.

    Returns how many pairs were graded, of how many, and the files of each split with their counts; none where
    one of the splits has no grade yet.

    Raises:
        InputError: The sheet cannot be used.
        KeyboardInterrupt: Ctrl-C; every grade is saved.
    """
    grading = Grading(sheet, purpose)
    if not grading.rows:
        raise InputError(f"{sheet} holds no pairs; move it away, and draw some")
    log.info("%s: %d of %d graded", sheet, grading.graded, len(grading.rows))
    server = _Server(grading)
    thread = threading.Thread(target=server.serve_forever, name="grading")
    thread.start()
    log.warning("grade at %s (Ctrl-C, or finish on the page; every grade is saved)", server.url)
    try:
        if browser:
            open_page(server.url)
        server.done.wait()
    except KeyboardInterrupt:
        said = f"{grading.graded} of {len(grading.rows)} graded; the same command goes on"
        raise KeyboardInterrupt(said) from None
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        files = {}
        if all(graded_pairs(sheet).values()):
            files = finish_grading(sheet, replace=True)
    return {"graded": grading.graded, "pairs": len(grading.rows), "files": files}


def open_page(url: str) -> None:
    """Open an address in a browser with windows; one in this terminal would take it over."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        in_terminal = isinstance(browser, webbrowser.GenericBrowser)
        if not in_terminal or isinstance(browser, webbrowser.BackgroundBrowser):
            browser.open(url)


class _Server(ThreadingHTTPServer):
    """The server of one sheet; `done` is set when the page says that it is finished."""

    def __init__(self, grading: Grading) -> None:
        super().__init__((HOST, 0), _Handler)
        self.grading = grading
        self.token = secrets.token_urlsafe(16)
        self.done = threading.Event()
        self.url = f"http://{HOST}:{self.server_port}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for the page, with grades to save, and of the end, of who has the token."""

    server: _Server

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        given = parse_qs(asked.query).get("token", [""])[0]
        if asked.path != "/" or not self._may(given):
            self._answer(HTTPStatus.NOT_FOUND, "not found: open the address that angle-data grade shows")
            return
        self._answer(HTTPStatus.OK, self.server.grading.page(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        said = self.headers.get("Content-Length", "")
        length = int(said) if said.isdecimal() else -1
        if not self._may(self.headers.get("X-Token", "")) or not 0 <= length <= _LONGEST_BODY:
            self._answer(HTTPStatus.FORBIDDEN, "refused")
            return
        try:
            self._act(self.rfile.read(length))
        except (ValueError, AttributeError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            self._answer(HTTPStatus.INSUFFICIENT_STORAGE, f"not saved: {error.strerror}")
        else:
            self._answer(HTTPStatus.OK, "saved")

    def _act(self, content: bytes) -> None:
        if self.path == "/grade":
            self.server.grading.save(loads(content.decode()))
        elif self.path == "/done":
            self.server.done.set()
        else:
            raise ValueError("neither /grade nor /done")

    def _may(self, given: str) -> bool:
        """Whether a request knows the token, and was not led here under another name."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        known = secrets.compare_digest(given.encode(), self.server.token.encode())
        return known and host in (HOST, "localhost")

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        with suppress(OSError):  # the browser may be gone
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: what is graded is no matter of the terminal."""
