"""Proxies of the environment over real sockets: when they are used, and that their passwords stay hidden."""

import asyncio
import socket
import socketserver
import threading
import traceback
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Transport
from angle_data.cli import main
from angle_data.errors import InputError
from angle_data.http import NoAnswer, ServiceError

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


def post(url):
    async def once():
        async with Transport(AnnotatorSpec("m", "server", "m"), 5.0) as transport:
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


def test_hosts_that_the_environment_excepts_are_asked_directly(environment):
    with FakeOpenAI() as server, proxy_that_says("502 not me") as proxy:
        environment(HTTP_PROXY=proxy.url)
        with pytest.raises(ServiceError):
            post(f"{server.url}/chat/completions")
        assert server.seen == []
        environment(NO_PROXY="127.0.0.1")
        assert post(f"{server.url}/chat/completions")["choices"]
        assert len(proxy.seen) == 1


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
