"""Proxies, TLS and streams of events over real sockets; passwords of proxies stay hidden."""

import asyncio
import json
import socket
import socketserver
import threading
import traceback
from contextlib import contextmanager
from itertools import takewhile
from types import SimpleNamespace

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.annotators.answers import read_answer, reply_of
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Transport
from angle_data.cli import main
from angle_data.errors import InputError
from angle_data.http import NoAnswer, NoReply, ServiceError

PASSWORD = "PASSWORD9"


@contextmanager
def proxy_that_says(answer):
    """A proxy that answers everything alike; `seen` are the first lines it was sent."""
    seen = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            head = list(iter(self.rfile.readline, b"\r\n"))
            seen.append(head[0].decode())
            self.wfile.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            self.request.shutdown(socket.SHUT_WR)
            self.rfile.read()  # or the client's last bytes would reset the connection

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://user:{PASSWORD}@127.0.0.1:{server.server_address[1]}"
        yield SimpleNamespace(url=url, seen=seen)
        server.shutdown()


@pytest.fixture
def environment(monkeypatch):
    """Set variables of proxies; those of the machine are out of the way."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)

    def set_them(**values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_them


def post(url, **options):
    async def once():
        async with Transport(AnnotatorSpec("m", "server", "m", **options), 5.0) as transport:
            return await transport.post(url, {"model": "m", "messages": [{"role": "user", "content": "x"}]})

    return asyncio.run(once())


def told(error):
    return str(error) + repr(error) + "".join(traceback.format_exception(error))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_another_password_is_named_without_it(environment, scheme):
    with proxy_that_says("407 Proxy Authentication Required") as proxy:
        environment(**{f"{scheme.upper()}_PROXY": proxy.url})
        with pytest.raises(NoAnswer) as raised:
            post(f"{scheme}://api.example.com/v1/chat/completions")
        assert len(proxy.seen) == 1
    said = "the proxy of the environment answers 407 Proxy Authentication Required; check the name"
    assert str(raised.value) == f"{said} and password in its address"
    assert PASSWORD not in told(raised.value)


def test_what_else_a_proxy_answers_is_shown_without_its_password(environment):
    with proxy_that_says("502 no route from http://user:PASSWORD9@inner:3128") as proxy:
        environment(HTTPS_PROXY=proxy.url)
        with pytest.raises(NoAnswer, match=r"answers 502 no route from http://\[…\]@inner:3128$") as raised:
            post("https://api.example.com/v1/chat/completions")
    assert PASSWORD not in told(raised.value)


NO_PROXIES = [
    f"user:{PASSWORD}@127.0.0.1:xx", f"http://us er:{PASSWORD}@127.0.0.1:xx",
    f"http://user:{PASSWORD}@127.0.0.1:99999", f"socks5://user:{PASSWORD}@127.0.0.1:1080",
    f"http://user:{PASSWORD}@",
]  # fmt: skip


@pytest.mark.parametrize("proxy", NO_PROXIES)
def test_an_address_that_is_no_proxys_is_a_mistake_of_the_user(environment, proxy):
    environment(HTTPS_PROXY=proxy)
    with pytest.raises(InputError, match="the proxy in HTTPS_PROXY is not an address of the form") as raised:
        post("https://api.example.com/v1/chat/completions")
    assert PASSWORD not in told(raised.value)


@pytest.mark.parametrize("excepted", ["127.0.0.1", "127.0.0.0/8", "other, 127.0.0.1:{port}", "*"])
def test_hosts_that_the_environment_excepts_are_asked_directly(environment, excepted):
    """As curl and requests read it: addresses, ranges, ports, all."""
    with FakeOpenAI() as server, proxy_that_says("502 not me") as proxy:
        environment(HTTP_PROXY=proxy.url)
        with pytest.raises(ServiceError):
            post(f"{server.url}/chat/completions")
        assert server.seen == []
        environment(NO_PROXY="127.0.0.2, 127.0.0.1:1, 10.0.0.0/8, .example.com")
        with pytest.raises(ServiceError):
            post(f"{server.url}/chat/completions")
        environment(NO_PROXY=excepted.format(port=server.origin.rpartition(":")[2]))
        assert post(f"{server.url}/chat/completions")["choices"]
        assert len(proxy.seen) == 2


def test_all_proxy_serves_where_no_other_is_named(environment):
    with proxy_that_says("502 not me") as general, proxy_that_says("502 nor me") as special:
        environment(ALL_PROXY=general.url)
        with pytest.raises(ServiceError):
            post("http://api.example.com/v1/chat/completions")
        environment(HTTP_PROXY=special.url)
        with pytest.raises(ServiceError):
            post("http://api.example.com/v1/chat/completions")
        assert (len(general.seen), len(special.seen)) == (1, 1)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_does_not_answer_is_named_by_its_variable(environment, variable):
    environment(**{variable: f"http://user:{PASSWORD}@127.0.0.1:9"})
    with (
        FakeOpenAI() as server,
        pytest.raises(NoAnswer, match=f", at the proxy in {variable}; NO_PROXY") as raised,
    ):
        post(f"{server.url}/chat/completions")
    assert PASSWORD not in told(raised.value)


def test_the_program_neither_shows_nor_stores_a_proxys_password(environment, tmp_path, monkeypatch, capfd):
    (tmp_path / "texts.txt").write_text("One node left.\n")
    with proxy_that_says("407 Proxy Authentication Required") as proxy:
        environment(HTTP_PROXY=proxy.url)
        options = ["--model", "tiny", "--base-url", "http://api.example.com/v1", "--quiet"]
        paths = ["--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "run")]
        monkeypatch.setattr("sys.argv", ["angle-data", "llm-label", *options, *paths])
        with pytest.raises(SystemExit) as stop:
            main()
    printed = capfd.readouterr()
    assert stop.value.code == 1
    assert "407" in printed.err
    assert PASSWORD not in printed.out + printed.err
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("http://user:pa@ss/w@host:1/x", "http://[…]@host:1/x"),
        ("at 'https://token@host' twice: http://a:b@c", "at 'https://[…]@host' twice: http://[…]@c"),
        ("user:secret@host:3128", "[…]@host:3128"),
        ("user:secret@[::1]:3128", "[…]@[::1]:3128"),
        ("write to ops@example.com, or http://host/a@b:c", "write to ops@example.com, or http://[…]@b:c"),
        ("http://host:80/v1", "http://host:80/v1"),
    ],
)
def test_addresses_in_the_words_of_a_service_are_masked(said, shown):
    """Too much rather than too little: a path that looks like a password goes as well."""
    with FakeOpenAI(always=Fault(500, message=said)) as server, pytest.raises(ServiceError) as raised:
        post(f"{server.url}/chat/completions")
    assert str(raised.value) == shown


@contextmanager
def server_that_says(content_type, content):
    """A server that answers every request alike, and closes the connection; yields its address."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            if self.rfile.peek(1)[:1] == b"\x16":  # TLS: answered as a server of HTTP does
                self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                return
            head = list(takewhile(lambda line: line not in (b"\r\n", b""), iter(self.rfile.readline, None)))
            lengths = [
                int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length")
            ]
            if not lengths:
                return  # no request in HTTP, and the client has gone
            (length,) = lengths
            self.rfile.read(length)
            self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n".encode())
            self.wfile.write(b"Connection: close\r\n\r\n" + content)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def chunk(delta=None, **others):
    choices = [] if delta is None else [{"index": 0, "delta": delta, **others}]
    return {"id": "x", "object": "chat.completion.chunk", "choices": choices} | ({} if delta else others)


DELTAS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Let me "}),
    chunk({"reasoning_content": "think."}),
    chunk({"content": "The disk "}, finish_reason=None),
    chunk({"content": "is full – 满."}),
    chunk({"content": None}, finish_reason="stop"),
    chunk(None, usage={"prompt_tokens": 7, "completion_tokens": 3}),
]
WHOLE = {"choices": [{"message": {"role": "assistant", "content": "One."}, "finish_reason": "length"}]}


def as_events(rows, mark="data: ", end="\n\n"):
    return "".join(f"{mark}{json.dumps(row)}{end}" for row in rows)


@pytest.mark.parametrize(
    "content",
    [
        as_events(DELTAS) + "data: [DONE]\n\n",
        as_events(DELTAS, "data:", "\r\n\r\n"),
        ": OPENROUTER PROCESSING\n\n"
        + as_events(DELTAS, "event: chunk\nid: 1\ndata: ")
        + ": end\n\ndata: [DONE]",
        "\ufeff\n" + as_events(DELTAS[:-1]) + "data: null\n\n" + as_events(DELTAS[-1:]),
    ],
    ids=["usual", "without blanks", "with comments and names", "with a mark"],
)
def test_a_stream_of_events_that_nobody_asked_for_is_one_message(environment, content):
    with server_that_says("text/event-stream", content.encode()) as url:
        answer = read_answer(post(url))
    assert (answer.text, answer.finish, answer.thinking) == (
        "The disk is full – 满.",
        "done",
        "Let me think.",
    )
    assert answer.usage == {"prompt_tokens": 7, "completion_tokens": 3}


@pytest.mark.parametrize(
    "content", [": PROCESSING\n\n: PROCESSING\n\n" + json.dumps(WHOLE, indent=1), as_events([WHOLE])]
)
def test_comments_before_a_message_and_a_message_as_one_event_are_read(environment, content):
    with server_that_says("application/json", content.encode()) as url:
        answer = read_answer(post(url))
    assert (answer.text, answer.finish) == ("One.", "cut")


def test_a_stream_that_ends_early_is_cut_and_a_broken_event_is_no_reply(environment):
    with server_that_says("text/event-stream", as_events(DELTAS[:4]).encode()) as url:
        assert read_answer(post(url)).finish != "done"
    broken = as_events(DELTAS[:4]) + 'data: {"id": "x", "choi'
    broken_json = pytest.raises(NoReply, match="the answer is broken JSON")
    with server_that_says("text/event-stream", broken.encode()) as url, broken_json:
        post(url)


def test_an_error_in_a_stream_is_that_error(environment):
    error = {"error": {"code": 429, "message": "slow down"}}
    with server_that_says("text/event-stream", as_events([*DELTAS[:3], error]).encode()) as url:
        assert read_answer(post(url)).error.status_code == 429


def test_a_key_is_masked_where_the_pieces_of_a_stream_are_joined(environment, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-0123456789")
    rows = [chunk({"content": "It is sk-01234"}), chunk({"content": "56789."}, finish_reason="stop")]
    with server_that_says("text/event-stream", as_events(rows).encode()) as url:
        assert read_answer(post(url, api_key_env="MY_KEY")).text == "It is [key]."


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 5000])
def test_a_deep_answer_is_no_traceback(environment, depth):
    deep = json.dumps(WHOLE).replace('"length"', '"length", "more": ' + "[" * depth + "]" * depth)
    with server_that_says("application/json", deep.encode()) as url:
        try:
            reply = reply_of("k", post(url), 0.0)
        except NoReply as error:
            said = str(error)
        else:
            said = reply.text
            json.dumps(reply.raw)
    assert said in ("One.", "the answer is JSON nested too deep")


def test_a_server_without_tls_is_named_as_that(environment):
    with server_that_says("application/json", b"{}") as url, pytest.raises(NoAnswer) as failed:
        post(url.replace("http:", "https:"))
    assert "no TLS connection" in str(failed.value)
    assert "does it speak http" in str(failed.value)
