"""A small server with the Files and Batches APIs of OpenAI on a loopback socket, with faults on demand.

For tests and benchmarks only. A batch moves one step on every look at it: validating, in_progress,
finalizing, completed. Results come in shuffled order; a share of the rows fails and lies in the error file.
Shapes follow https://developers.openai.com/api/reference/resources/batches and the guide to batches.
"""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web
from fake_openai import KNOWN_FIELDS, Fault, completion, error_response, plain_fault
from fake_server import FakeServer

CHAT = "/v1/chat/completions"
ENQUEUED = {"validating", "in_progress", "finalizing"}


def echo(body: dict) -> str:
    return f"answer to {body['messages'][-1]['content']}"


@dataclass
class StoredBatch:
    """One batch, as the service keeps it; `rows` are the input's requests once it is read."""

    id: str
    input_file: str
    metadata: dict
    endpoint: str
    status: str = "validating"
    output_file: str | None = None
    error_file: str | None = None
    errors: list[dict] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)
    created_at: int = 1_800_000_000

    @property
    def tokens(self) -> int:
        return sum(len(json.dumps(row["body"]["messages"])) // 4 for row in self.rows)

    def to_dict(self) -> dict:
        over = self.status in ("completed", "expired", "cancelled")
        return {
            "id": self.id, "object": "batch", "endpoint": self.endpoint,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file, "completion_window": "24h", "status": self.status,
            "output_file_id": self.output_file, "error_file_id": self.error_file,
            "created_at": self.created_at, f"{self.status}_at": self.created_at + 90 if over else None,
            "request_counts": {"total": len(self.rows), "completed": 0, "failed": 0},
            "metadata": self.metadata,
        }  # fmt: skip


class FakeBatch(FakeServer):
    """The server. `url` is the base URL, `batches` and `files` what it holds by id.

    `faults` maps an operation (upload, file, content, create, look, list) to faults that are used up one a
    call. Of their kinds, `lost` carries the operation out and breaks the connection instead of answering,
    `cut` sends half of the body, `short` sends a well-formed half. `failing` is the share of rows that fail,
    `vanishing` of those without any result; `strangers` is how many rows of nobody's are added. `ending` is
    how batches end (completed, expired, cancelled, failed); expired and cancelled ones have done half of
    their rows. `max_enqueued` bounds the tokens of the batches that are worked on. With `held`, batches stay
    in_progress until it is set to False, otherwise for one look. `refusals` are codes of errors with
    which the next batches are refused.
    """

    def __init__(
        self, reply: Callable[[dict], str] = echo, *, key: str | None = None,
        faults: dict[str, Iterable[Fault | None]] | None = None, failing: float = 0.0, vanishing: float = 0.0,
        strangers: int = 0, ending: str = "completed", max_enqueued: int | None = None, held: bool = False,
        refusals: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.batches: dict[str, StoredBatch] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.calls: list[str] = []
        self.held, self.ending, self.failing, self.max_enqueued = held, ending, failing, max_enqueued
        self.refusals = list(refusals)
        self.faults = {name: list(some) for name, some in (faults or {}).items()}
        self._reply, self._key, self.vanishing, self._strangers = reply, key, vanishing, strangers
        self._random = random.Random(0)

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def asked(self) -> list[str]:
        """The custom_ids of all batches that were not refused, in order of creation."""
        working = [batch for batch in self.batches.values() if batch.status != "failed"]
        return [row["custom_id"] for batch in working for row in batch.rows]

    def add_routes(self, app: web.Application) -> None:
        routes = [
            ("POST", "/v1/files", "upload", self._upload), ("GET", "/v1/files/{id}", "file", self._file),
            ("GET", "/v1/files/{id}/content", "content", self._file),
            ("POST", "/v1/batches", "create", self._create), ("GET", "/v1/batches", "list", self._list),
            ("GET", "/v1/batches/{id}", "look", self._look),
        ]  # fmt: skip
        for method, path, name, handler in routes:
            app.router.add_route(method, path, self._guarded(name, handler))

    def _guarded(self, name: str, handler: Callable) -> Callable:
        """Count the call, check the key and apply the next fault of this operation."""

        async def handle(request: web.Request) -> web.StreamResponse:
            self.calls.append(name)
            given = request.headers.get("Authorization")
            if self._key is not None and given != f"Bearer {self._key}":
                return error_response(401, f"Incorrect API key provided: {given}", "invalid_api_key")
            fault = self.faults[name].pop(0) if self.faults.get(name) else None
            if fault is None:
                return await handler(request)
            if fault.kind in ("reset", "html", "status"):
                return plain_fault(fault, request)
            answer = await handler(request)
            body = answer.body
            if fault.kind == "short":
                lines = body.splitlines(keepends=True)
                return web.Response(body=b"".join(lines[: len(lines) // 2]))
            if fault.kind == "cut":
                stream = web.StreamResponse(headers={"Content-Length": str(len(body))})
                await stream.prepare(request)
                await stream.write(body[: len(body) // 2])
            request.transport.abort()
            return web.Response()

        return handle

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        if form.get("purpose") != "batch":
            return error_response(400, "'purpose' must be batch")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = (form["file"].filename, form["file"].file.read())
        return web.json_response(self._describe(name))

    def _describe(self, name: str) -> dict:
        filename, content = self.files[name]
        kind = {"id": name, "object": "file", "filename": filename, "purpose": "batch", "status": "processed"}
        return {**kind, "bytes": len(content), "created_at": 0}

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.files:
            return error_response(404, f"No such File object: {name}")
        if request.path.endswith("/content"):
            return web.Response(body=self.files[name][1], content_type="application/octet-stream")
        return web.json_response(self._describe(name))

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if asked.get("completion_window") != "24h" or asked.get("endpoint") != CHAT:
            return error_response(400, "unsupported endpoint or completion_window")
        if asked.get("input_file_id") not in self.files:
            return error_response(400, f"no file {asked.get('input_file_id')}")
        name = f"batch_{len(self.batches) + 1}"
        batch = StoredBatch(name, asked["input_file_id"], asked["metadata"], asked["endpoint"])
        self.batches[name] = batch
        return web.json_response(batch.to_dict())

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first, two a page whatever is asked, so that every caller has to turn pages."""
        ids = list(reversed(self.batches))
        after = request.query.get("after")
        rest = ids[ids.index(after) + 1 :] if after else ids
        page = [self.batches[name].to_dict() for name in rest[:2]]
        return web.json_response({"object": "list", "data": page, "has_more": len(rest) > 2})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return error_response(404, f"No batch found with id '{request.match_info['id']}'.")
        shown = batch.to_dict()
        self._advance(batch)
        return web.json_response(shown)

    def _advance(self, batch: StoredBatch) -> None:
        if batch.status == "validating":
            self.validate(batch)
        elif batch.status == "in_progress":
            batch.status = batch.status if self.held else "finalizing"
        elif batch.status == "finalizing":
            self.end(batch, self.ending)

    def validate(self, batch: StoredBatch) -> None:
        lines = self.files[batch.input_file][1].splitlines()
        batch.rows = [json.loads(line) for line in lines]
        batch.errors = [error for number, row in enumerate(batch.rows, 1) for error in check_row(row, number)]
        if len({row["custom_id"] for row in batch.rows}) < len(batch.rows):
            batch.errors.append({"code": "duplicate_custom_id", "message": "a custom_id occurs twice"})
        busy = sum(b.tokens for b in self.batches.values() if b.status in ENQUEUED - {"validating"})
        if self.max_enqueued is not None and busy + batch.tokens > self.max_enqueued:
            message = f"Enqueued token limit reached for tiny. Limit: {self.max_enqueued} enqueued tokens."
            batch.errors.append({"code": "token_limit_exceeded", "message": message})
        if self.refusals:
            batch.errors.append({"code": self.refusals.pop(0), "message": "not today", "line": 1})
        batch.status = "failed" if batch.errors else "in_progress"

    def complete(self, batch: StoredBatch) -> None:
        """Take a batch and end it now, whatever it waits for."""
        self.validate(batch)
        self.end(batch, "completed")

    def end(self, batch: StoredBatch, status: str) -> None:
        """Write the result files: half of the rows are done when the batch did not complete."""
        good, bad = [], []
        worked = len(batch.rows) if status == "completed" else len(batch.rows) // 2
        for number, row in enumerate(batch.rows):
            if number >= worked:
                if status == "expired":
                    bad.append(result(row, error={"code": "batch_expired", "message": "This took too long."}))
                continue
            luck = self._random.random()
            if luck < self.failing:
                bad.append(result(row, 500, {"error": {"message": "The server had an error", "code": None}}))
            elif luck >= self.failing + self.vanishing:
                good.append(result(row, 200, completion(row["body"], self._reply(row["body"]))))
        for number in range(self._strangers):
            row = {"custom_id": f"stranger-{number}"}
            good.append(result(row, 200, completion({"model": "tiny"}, "hello")))
        batch.output_file, batch.error_file = self._store("output", good), self._store("error", bad)
        batch.status = status

    def _store(self, kind: str, rows: list[dict]) -> str | None:
        if not rows:
            return None
        self._random.shuffle(rows)
        name = f"file-{len(self.files) + 1}"
        self.files[name] = (f"{kind}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
        return name


def check_row(row: dict, number: int) -> list[dict]:
    """The errors of one input row, as the validation of the real API words them."""
    if row.get("method") != "POST" or row.get("url") != CHAT or not 0 < len(row.get("custom_id", "")) <= 64:
        return [{"code": "invalid_row", "message": "method, url or custom_id is wrong", "line": number}]
    if unknown := sorted(row["body"].keys() - KNOWN_FIELDS):
        return [{"code": "unknown_parameter", "message": f"Unknown parameter: {unknown[0]}", "line": number}]
    return []


def result(row: dict, status: int | None = None, body: dict | None = None, error: dict | None = None) -> dict:
    """One line of an output or error file."""
    name = f"batch_req_{row['custom_id']}"
    response = None if status is None else {"status_code": status, "request_id": "r", "body": body}
    return {"id": name, "custom_id": row["custom_id"], "response": response, "error": error}
