"""Posts JSON to one service over aiohttp and tells apart what can go wrong. Retries nothing.

The openai client does the same with several times the CPU: see "throughput" in benchmarks/labelling.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from angle_data.annotators.masking import masked
from angle_data.errors import InputError
from angle_data.http import BadAnswer, NoAnswer, ServiceError

_CONNECT_S = 10.0
_BODY_CHARS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded answer with status 200, and its headers (names in any case)."""

    body: Any
    headers: Mapping[str, str]


class Transport:
    """An asynchronous context manager that holds the connections of a run; `timeout_s` bounds one attempt.

    `key` goes with every request; with `secret`, no exception repeats it, whatever the service says.
    """

    def __init__(self, key: str, timeout_s: float, *, secret: bool) -> None:
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._timeout_s, self._secret = timeout_s, key if secret else None
        self._proxies: dict[str, str | None] = {}

    async def __aenter__(self) -> Self:
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_trust()),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=_CONNECT_S),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await asyncio.sleep(0)  # closed connections let go of their sockets a moment later

    async def post(self, url: str, body: Mapping[str, Any]) -> Answer:
        """Post `body` as JSON to `url` and return the answer.

        Raises:
            NoAnswer: No connection, it broke, or time ran out.
            ServiceError: The service answered with another status than 200; redirects are not followed.
            InputError: The environment names a proxy that cannot be used.
            BadAnswer: The answer is no JSON.
        """
        import aiohttp

        if url not in self._proxies:
            self._proxies[url] = _proxy(url)
        try:
            async with self._session.post(
                url, data=json.dumps(body).encode(), proxy=self._proxies[url], allow_redirects=False
            ) as response:
                content, status, headers = await response.read(), response.status, response.headers
        except aiohttp.ClientHttpProxyError as error:
            # The exception holds the proxy's address with its password, so nothing is raised from it.
            raise _proxy_error(error.status, error.message) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NoAnswer(_reason(error), connected=False) from error
        except TimeoutError as error:
            message = (
                f"no answer within {self._timeout_s:g} s; give it longer with --engine-option "
                "timeout_s=SECONDS, or send less at once with --concurrency"
            )
            raise NoAnswer(message, connected=True, timeout=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(_reason(error), connected=True) from error
        if status == 407:
            raise _proxy_error(status, response.reason or "")
        if status != 200:
            raise _service_error(status, content, headers, self._secret)
        try:
            return Answer(json.loads(content), headers)
        except ValueError as error:
            if "html" in headers.get("Content-Type", ""):
                raise BadAnswer("the answer is a web page; does --base-url end in /v1?") from error
            raise BadAnswer(f"the answer is broken JSON ({error})") from error


def _trust() -> Any:
    """Return the certificates to trust: the system's and, where it is installed, certifi's."""
    import ssl

    context = ssl.create_default_context()
    with suppress(ImportError):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`; looked up once, since that is slow."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is not None and "://" not in proxy:
        proxy = f"http://{proxy}"  # HOST:PORT, as curl takes it
    if proxy is not None and not _is_address(proxy):
        # It is not shown: where it is malformed, no rule tells the password in it.
        raise InputError(
            f"the proxy in {parts.scheme.upper()}_PROXY is no address of the form http://HOST:PORT; correct "
            "it, or name the server's host in NO_PROXY"
        )
    return proxy


def _is_address(proxy: str) -> bool:
    """Whether this is the address of a kind of proxy that can be used; aiohttp knows no socks."""
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _proxy_error(status: int, said: str) -> NoAnswer:
    fix = "; check the name and password in its address" if status == 407 else ""
    answer = masked(f"the proxy of the environment answers {status} {said}").rstrip()
    return NoAnswer(answer + fix, connected=False)


def _reason(error: BaseException) -> str:
    """Return what the system says of a connection that did not come about, else what the error says."""
    cause = getattr(error, "os_error", None)
    if isinstance(cause, OSError):
        number = cause.errno or 0  # below zero: a name that no server knows
        return os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return masked(str(error)) or type(error).__name__


def _service_error(
    status: int, content: bytes, headers: Mapping[str, str], secret: str | None
) -> ServiceError:
    """Read an error as OpenAI, vLLM, GLM and FastAPI write it; anything else is quoted. Hides `secret`."""
    try:
        decoded: Any = json.loads(content)
    except ValueError:
        decoded = None
    inner = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    message, codes = None, frozenset[str]()
    if isinstance(inner, dict):
        message = inner.get("message") or inner.get("detail")
        codes = frozenset(str(inner[name]) for name in ("code", "type") if inner.get(name))
    elif isinstance(inner, str):
        message = inner
    if 300 <= status < 400:
        message = f"it redirects to {headers.get('Location', 'another address')}"
    said = str(message) if message else content.decode(errors="replace").strip() or f"HTTP {status}"
    # Here, not where it is shown: a traceback shows the exceptions that others came from as well.
    if secret is not None:
        said = said.replace(secret, "[key]")
    if not message:
        said = said[:_BODY_CHARS]
    return ServiceError(status, masked(said), codes, headers)
