"""The chat completions protocol over aiohttp: what goes out, what comes back, and what can go wrong between.

Bodies and answers follow the OpenAI API reference, https://platform.openai.com/docs/api-reference/chat.
Nothing is retried here. The openai client takes several times the CPU: "throughput" in benchmarks/labelling.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from html.entities import html5
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from angle_data.annotators.answers import error_words, service_error
from angle_data.annotators.base import ChatRequest, Sampling
from angle_data.annotators.messages import message_of_events
from angle_data.annotators.models import is_reasoning, service_of, services
from angle_data.annotators.spec import DEFAULT_URL, AnnotatorSpec, Dialect
from angle_data.errors import CredentialsError
from angle_data.http import (
    BadAnswer,
    CallError,
    NoAnswer,
    NoReply,
    is_retryable,
    proxy_for,
    retry_after,
)
from angle_data.text import longest_answer, printable

CHECK_ADDRESS = "start the server, correct --base-url or check the network; a proxy is named by HTTPS_PROXY"
"""What to do when nothing answers."""
CHAT_PATH = "/chat/completions"
PROBE_FILE = "probe.json"
"""In a run folder: what `probe` has found out about the form in which its service is asked."""
_CONNECT_S = 10.0
# The variables of the openai client, which say who is billed: they go where a key goes.
_OF_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_MESSAGE_CHARS = 300
# A user name and password in an address; the second form is an address without its scheme.
_USERINFO = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}+://)[^\s'\"<>]{0,300}@", re.IGNORECASE
)  # http://me:pw@host
_BARE = re.compile(r"(?<![\w/@])[^\s/@'\"<>:]{1,100}+:[^\s/@'\"<>]{1,200}+@(?=[\w\[])")  # me:pw@host:3128

_LAXER = {"bounded_schema": "json_object", "json_schema": "json_object", "json_object": "text"}
_FORMATS = ("response_format", "guided_json", "structured_outputs", "format")
_NAMES_FORMAT = re.compile(
    r"response_format|json.?schema|json_object|structured.?output|guided|m(?:ax|in)(?:Length|Items)|"
    r"(?:parse|compile|convert|unsupported|invalid)[ \w]{0,30} (?:grammar|schema)|grammar_error",
    re.IGNORECASE,
)
_NAMES_LENGTH = re.compile("maxLength", re.IGNORECASE)
_NAMES_TOKENS = re.compile(r"\bmax_tokens\b(?=[\s\S]{0,2000}\bmax_completion_tokens\b)")
_OPTIONAL = ("temperature", "seed")
_REFUSES = re.compile(
    r"unsupported|not support|unrecognized|unknown|not (?:permitted|allowed)|deprecated|only", re.IGNORECASE
)
_PAGE = re.compile(r"<(?:!doctype|html|head|body|title|h1)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{0,500})", re.IGNORECASE)
_LIMIT = "x-ratelimit-limit-"
_SHORTEST_KEY = 8
_SHORTEST_VALUE = 4
_MOST_SEARCHED = 20_000  # characters of an error or a page that are read: a pattern goes through all of them
_CHARSET = re.compile(r"charset=[\"']?([\w-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """How a server is asked, as far as it is known what it takes.

    `json`: how a reply is held to JSON: to the schema with lengths (`bounded_schema`) or without
    (`json_schema`), to any object (`json_object`), not at all (`text`; the prompt asks for it anyway).
    `tokens` is its name for the longest reply; the fields `without` are left out.
    """

    json: str = "json_schema"
    tokens: str = "max_tokens"
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in a few words, for a log."""
        return " ".join([f"{self.json} and {self.tokens}", *(f"without {name}" for name in self.without)])

    def to_dict(self) -> dict[str, Any]:
        """Return it for PROBE_FILE."""
        return {"form": self.json, "max_tokens_field": self.tokens, "without": list(self.without)}

    @classmethod
    def of(cls, spec: AnnotatorSpec) -> Self:
        """Return the form to begin with, by what is known of the service and the model, or was found."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((spec.run or Path()).joinpath(PROBE_FILE).read_text(encoding="utf-8"))
            same = found["checkpoint"] == spec.checkpoint and [found["address"]] == [*spec.addresses]
            if spec.run is not None and same and found["form"] in ("bounded_schema", *_LAXER, "text"):
                return cls(found["form"], str(found["max_tokens_field"]), tuple(found["without"]))
        if spec.dialect == "glm":
            return cls("json_object", without=("seed",))
        # OpenAI's strict schemas take no lengths, and a batch is asked once; llama.cpp runs on without.
        service = service_of(spec.addresses[0])
        own = spec.engine == "server" and (service is None or service.free)
        held_to = "bounded_schema" if own else "json_schema"
        if not is_reasoning(spec.checkpoint):
            return cls(held_to)
        thinks = spec.params.get("reasoning_effort") != "none"
        return cls(held_to, tokens="max_completion_tokens", without=("temperature",) if thinks else ())

    def relaxed(self, error: CallError, sampling: Sampling) -> Form:
        """Return the form for a server that refused this one with `error`, the same one if nothing helps.

        What it names as the field (`param`) says more than its words.
        """
        said, field = str(error)[:_MOST_SEARCHED], error.param.split(".")[0]
        refused_only = error.status_code in (400, 422)  # a 500 may be any fault of the server
        if self.tokens == "max_tokens" and (field == "max_tokens" or _NAMES_TOKENS.search(said)):
            return replace(self, tokens="max_completion_tokens")
        named = field in _FORMATS or (not field and _NAMES_FORMAT.search(said))
        named = named or (_NAMES_FORMAT.search(said) and field not in _OPTIONAL)
        if sampling.schema is not None and self.json in _LAXER and named:
            bounds = self.json == "bounded_schema" and _NAMES_LENGTH.search(said)
            return replace(self, json="json_schema" if bounds else _LAXER[self.json])
        for name in _OPTIONAL if refused_only else ():
            sent = getattr(sampling, name) is not None and name not in self.without
            says = re.search(rf"\b{name}\b", said) and _REFUSES.search(said)
            if sent and (field == name or says):
                return replace(self, without=(*self.without, name))
        return self


def one_line(text: object) -> str:
    """Return the text of a message or error on one line of at most 300 characters."""
    line = " ".join(printable(str(text)[:_MOST_SEARCHED]).split())
    if not line and isinstance(text, BaseException):
        line = type(text).__name__
    return line if len(line) <= _MESSAGE_CHARS else line[: _MESSAGE_CHARS - 1] + "…"


def page_title(text: str) -> str | None:
    """Return the title of a web page, "" if it has none, and None for a text that is no page."""
    if not _PAGE.search(text[:_MESSAGE_CHARS]):
        return None
    title = _TITLE.search(text)
    return " ".join(html.unescape(title[1]).split()) if title else ""


@dataclass(frozen=True, slots=True)
class Key:
    """API keys and other secret values, and what finds them however their characters are written."""

    plain: tuple[str, ...]
    written: re.Pattern[str]


Secret = Key | None


def secrets_of(spec: AnnotatorSpec) -> tuple[Secret, Secret]:
    """Return what finds keys in the words of a service, and in replies; None where nothing is to be hidden.

    They are found as they are, and with any of their characters escaped as in JSON, an address or a page. A
    key such as the "test" of a local server may well be a word of a reply.
    """
    key = [] if spec.api_key_env is None else [api_key(spec)]
    values = [*key, *(value for value in _own_headers(spec).values() if len(value) >= _SHORTEST_VALUE)]
    unlikely = [value for value in values if len(value) >= _SHORTEST_KEY and not value.isalpha()]
    return _finding(values), _finding(unlikely)


def _finding(values: list[str]) -> Secret:
    written = ("".join(map(_ways_to_write, value)) for value in values)
    return Key(tuple(values), re.compile("|".join(written))) if values else None


def _ways_to_write(character: str) -> str:
    code = ord(character)
    named = [re.escape(name) for name, meant in html5.items() if meant == character and name[-1] == ";"]
    entities = "|".join([f"#0{{0,4}}{code};", f"#x0{{0,4}}(?i:{code:x});", *named])
    escaped = rf"\\{{1,4}}u00(?i:{code:02x})|%(?i:{code:02x})|&(?:{entities})"
    return rf"(?:\\{{0,4}}{re.escape(character)}|{escaped})"


def hidden(text: str, secret: Secret) -> str:
    """Return a text without the key, should a service repeat it; see `secrets_of`."""
    if secret is None:
        return text
    for value in secret.plain:
        text = text.replace(value, "[key]")
    is_escaped = "\\" in text or "&" in text or "%" in text
    return secret.written.sub("[key]", text) if is_escaped else text


def masked(text: str) -> str:
    """Return `text` with […] in place of the user name and password of every address in it."""
    if "@" not in text:
        return text
    return _BARE.sub("[…]@", _USERINFO.sub(r"\g<scheme>[…]@", text))


def api_key(spec: AnnotatorSpec) -> str:
    """Return the API key from the variable that `spec` names; a `CredentialsError` unless it can be one."""
    if spec.api_key_env is None:
        return "EMPTY"  # what `vllm serve` without --api-key accepts; services want some key
    key = os.environ.get(spec.api_key_env, "").strip()
    if not key:
        raise CredentialsError(
            f"no API key: set the environment variable {spec.api_key_env} or name another (--api-key-env; in "
            "angle.toml: api-key-env)"
        )
    if not (key.isascii() and key.isprintable()):
        said = "is not an API key: it holds characters no key has"
        raise CredentialsError(f"the value of {spec.api_key_env} {said}")
    return key


def service_headers(spec: AnnotatorSpec) -> dict[str, str]:
    """Return the headers of every call of a service: key, account, and those of --header.

    Without --api-key-env, --header says who is asking. The account is OpenAI's: other services that the
    toolkit knows are not told of it.

    Raises:
        CredentialsError: A variable with a key or a value is not set.
    """
    own = _own_headers(spec)
    headers = {}
    if spec.api_key_env is not None or not own:
        headers["Authorization"] = f"Bearer {api_key(spec)}"
    service = service_of(spec.addresses[0])
    if spec.api_key_env is not None and (service is None or service.address == DEFAULT_URL):
        values = {name: os.environ.get(variable, "").strip() for name, variable in _OF_ACCOUNT.items()}
        headers |= {name: value for name, value in values.items() if value}
    given = {name.casefold() for name in own}
    return {name: value for name, value in headers.items() if name.casefold() not in given} | own


def _own_headers(spec: AnnotatorSpec) -> dict[str, str]:
    values = {name: os.environ.get(variable, "").strip() for name, variable in spec.headers.items()}
    for name, value in values.items():
        if not (value and value.isascii() and value.isprintable()):
            # A variable that the user named is not shown: it may well be the key itself.
            variable = spec.headers[name]
            known = any(variable == service.api_key_env for service in services())
            which = f"the environment variable {variable}" if known else "its environment variable"
            raise CredentialsError(f"--header {name}: {which} is not set, or holds no header")
    return values


def url_at(address: str, path: str) -> str:
    """Return the address of a path below a service's, with its query (`?api-version=`) behind it."""
    parts = urlsplit(address)
    return parts._replace(path=parts.path.rstrip("/") + path).geturl()


def credentials_error(spec: AnnotatorSpec, address: str, status: int, said: str) -> CredentialsError:
    """Return the error for a 401 or 403, about the key or the country, the project, the model."""
    fix = f"check the key in {spec.api_key_env} and the rights of its project"
    if spec.api_key_env is None and spec.headers:
        fix = "check the key in the variable of --header"
        service = service_of(address)
        if service and service.api_key_env in spec.headers.values():
            fix = f"check the key in {service.api_key_env} and that it is of this resource"
    elif spec.api_key_env is None:
        fix = "if it wants an API key, name its variable with --api-key-env (in a project: api-key-env below"
        fix += " [llm-label] in angle.toml)"
    return CredentialsError(f"{address} refuses access (HTTP {status}): {said}; {fix}")


LONGEST_WAIT_S = 600.0
"""A service that asks to wait longer ends the run, which goes on when the command is given again."""


def asks_to_wait(address: str, error: CallError) -> str | None:
    """Return one line for a service that asks to wait longer than a run waits; else None."""
    wait = retry_after(error.headers)
    if wait is None or wait <= LONGEST_WAIT_S or not is_retryable(error):
        return None
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + min(wait, 1e8)))
    return (
        f"{address} asks to wait {wait / 60:,.0f} minutes, until {until} ({error}); a run waits "
        f"{LONGEST_WAIT_S / 60:.0f} at most: run the same command again then"
    )


def out_of_money(address: str, error: CallError) -> str | None:
    """Return one line for a service that answers 402: nothing is in the account; else None."""
    if error.status_code != 402:
        return None
    return f"{address}: the account is empty (HTTP 402): {error}; top it up and run the same command again"


def request_body(request: ChatRequest, dialect: Dialect = "openai", form: Form = Form()) -> dict[str, Any]:
    """Return the JSON body that asks `request`."""
    sampling = request.sampling
    body: dict[str, Any] = {"model": request.model, "messages": list(request.messages)}
    for name in _OPTIONAL:
        if name not in form.without and (value := getattr(sampling, name)) is not None:
            body[name] = value
    body[form.tokens] = sampling.max_tokens
    if dialect == "glm":  # its models think aloud otherwise: https://docs.bigmodel.cn/api-reference
        body["thinking"] = {"type": "disabled"}
    if sampling.schema is not None and form.json != "text":
        body["response_format"] = {"type": form.json.replace("bounded", "json")}
        if form.json != "json_object":
            bounded = form.json == "bounded_schema"
            schema = bounded_schema(sampling.schema, request.source) if bounded else sampling.schema
            body["response_format"]["json_schema"] = {"name": "sentences", "schema": schema, "strict": True}
    body.update(sampling.params)
    return body


def bounded_schema(schema: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a schema with a length for each string: a model that is held to it may go on without end."""
    longest = {"maxLength": longest_answer(source)}

    def bound(part: dict[str, Any]) -> dict[str, Any]:
        return part | longest if part.get("type") == "string" else part

    bounded: dict[str, Any] = json.loads(json.dumps(schema), object_hook=bound)
    return bounded


class Transport:
    """An asynchronous context manager that holds the connections of a run; `timeout_s` bounds one attempt.

    The key goes with every request, and no exception repeats it, whatever the service says.
    """

    def __init__(self, spec: AnnotatorSpec, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._headers = {**service_headers(spec), "Content-Type": "application/json"}
        self._secret, self._secret_of_replies = secrets_of(spec)
        self._proxies: dict[str, tuple[str | None, str]] = {}
        self._last_headers: Mapping[str, str] = {}

    async def __aenter__(self) -> Self:
        import ssl

        import aiohttp

        trusted = ssl.create_default_context()  # the system's certificates
        with suppress(ImportError):
            import certifi

            trusted.load_verify_locations(certifi.where())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trusted),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=_CONNECT_S),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await asyncio.sleep(0)  # closed connections let go of their sockets a moment later

    async def post(self, url: str, body: Mapping[str, Any]) -> Any:
        """Post `body` as JSON to `url` and return the decoded answer; redirects are not followed.

        Raises:
            CallError: What went wrong, by its classes.
            InputError: The environment names a proxy that cannot be used.
        """
        import aiohttp

        if url not in self._proxies:
            self._proxies[url] = proxy_for(url)
        proxy, variable = self._proxies[url]
        status = 0
        try:
            async with self._session.post(
                url, data=json.dumps(body).encode(), proxy=proxy, allow_redirects=False
            ) as response:
                status, headers = response.status, response.headers
                self._last_headers = headers
                content = await response.read()
        # Exceptions about a proxy hold its address with its password, so nothing is raised from them.
        except aiohttp.ClientHttpProxyError as error:
            raise _proxy_error(error.status, error.message) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            at_proxy = f", at the proxy in {variable}; NO_PROXY=HOST goes past it" if proxy else ""
            raise NoAnswer(_reason(error) + at_proxy, connected=False) from (None if proxy else error)
        except TimeoutError as error:
            message = f"no answer within {self._timeout_s:g} s; give it longer with --engine-option "
            message += "timeout_s=SECONDS, or send less at once with --concurrency"
            raise NoAnswer(message, connected=True, timeout=True) from error
        except (aiohttp.ClientError, OSError) as error:
            if status == 200:
                raise NoReply(f"the answer broke off ({_reason(error)})") from error
            raise NoAnswer(_reason(error), connected=True) from error
        if status == 407:
            raise _proxy_error(status, response.reason or "")
        if not 200 <= status < 300:
            raise _service_error(status, content, headers, self._secret)
        return _decoded(content, headers, self._secret_of_replies)

    def told_limits(self) -> dict[str, str]:
        """Return the limits that the last answer's headers tell (`x-ratelimit-limit-*`), by name."""
        told = ((name.casefold(), one_line(value)) for name, value in self._last_headers.items())
        return {name.removeprefix(_LIMIT): value for name, value in told if name.startswith(_LIMIT)}


def _decoded(content: bytes, headers: Mapping[str, str], secret: Secret) -> Any:
    """Return the JSON of an answer, also where it comes as a stream of events that nobody asked for."""
    try:
        text = content.decode(_charset_in(headers.get("Content-Type", ""))).lstrip("\ufeff \t\r\n")
        is_stream = text.startswith((":", "data:", "event:", "id:"))
        return without_key(_of_events(text) if is_stream else json.loads(text), secret)
    except RecursionError:
        raise NoReply("the answer is JSON nested too deep") from None
    except (ValueError, LookupError) as error:
        is_page = page_title(content[:_MOST_SEARCHED].decode(errors="replace")) is not None
        if is_page or "html" in headers.get("Content-Type", ""):
            raise BadAnswer("the answer is a web page; does --base-url end in /v1?") from None
        raise NoReply(f"the answer is broken JSON ({error})") from None


@lru_cache(maxsize=16)  # a service has one or two
def _charset_in(content_type: str) -> str:
    charset = _CHARSET.search(content_type)
    return charset[1] if charset else "utf-8"


def _of_events(text: str) -> Any:
    """Return the message that a stream of server-sent events makes; comments begin with a colon."""
    others = (":", "event:", "id:")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(others)]
    if not all(line.startswith("data:") for line in lines):
        return json.loads("\n".join(lines))  # comments before plain JSON
    data = (line.removeprefix("data:").strip() for line in lines)
    return message_of_events(json.loads(event) for event in data if event != "[DONE]")


def without_key(value: Any, secret: Secret) -> Any:
    """Return decoded JSON without the key in any string of it, should a service repeat it."""
    if secret is None or isinstance(value, int | float | None):
        return value
    if isinstance(value, str):
        return hidden(value, secret)
    if isinstance(value, list):
        return [without_key(item, secret) for item in value]
    return {hidden(name, secret): without_key(item, secret) for name, item in value.items()}


def _proxy_error(status: int, said: str) -> NoAnswer:
    fix = "; check the name and password in its address" if status == 407 else ""
    answer = masked(f"the proxy of the environment answers {status} {said}").rstrip()
    return NoAnswer(answer + fix, connected=False)


def _reason(error: BaseException) -> str:
    """Return what the system says of a connection that failed, else what the error says."""
    import ssl

    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if isinstance(cause, ssl.SSLCertVerificationError):
        trust = "SSL_CERT_FILE names a file of authorities to trust"
        return f"its certificate is not trusted: {cause.verify_message}; {trust}"
    if isinstance(cause, ssl.SSLError):  # its number is of OpenSSL, not of the system
        return f"no TLS connection: {cause.reason or cause}; does it speak http, not https?"
    if isinstance(cause, OSError):
        number = cause.errno or 0  # below zero: a name that no server knows
        return os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return masked(str(error)) or type(error).__name__


def _service_error(status: int, content: bytes, headers: Mapping[str, str], secret: Secret) -> CallError:
    """Read an error as OpenAI, vLLM, GLM and FastAPI write it; of a web page its title, else it is quoted."""
    text = content.decode("utf-8-sig", errors="replace").strip()
    try:
        decoded: Any = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    inner = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    message, codes = error_words(inner)
    if 300 <= status < 400:
        where = headers.get("Location", "another address").partition("?")[0]  # after ? there may be a key
        message = f"it redirects to {where}; give that address with --base-url"
    said = (message or text)[:_MOST_SEARCHED] or f"HTTP {status}"
    if (title := page_title(said)) is not None:
        said = f"HTTP {status}{title and f': {title}'}"
    said = masked(hidden(html.unescape(said), secret) if secret else said)
    param = str(inner.get("param") or "") if isinstance(inner, dict) else ""
    codes = frozenset(hidden(code, secret) for code in codes)
    return service_error(status, said if message else said[:_MESSAGE_CHARS], codes, headers, param)
