"""Who is asked and billed: headers and addresses are alike for the server and the batch engine."""

import pytest
from fake_batch import FakeBatch
from fake_openai import FakeOpenAI, Fault
from labelling_runs import config_of, write_texts

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.endpoints import Endpoint
from angle_data.annotators.limits import Limiter
from angle_data.annotators.spec import EngineConfig
from angle_data.annotators.transport import Form, service_headers
from angle_data.errors import AngleError, CredentialsError, InputError, StoppedError
from angle_data.labelling.label import label

AZURE = "http://h/openai/deployments/mini?api-version=2024-10-21"


@pytest.fixture
def variables(monkeypatch):
    values = {"MY_KEY": "sk-secret-1234", "OPENAI_ORG_ID": "org-9", "OPENAI_PROJECT_ID": "proj-9"}
    for name, value in {**values, "MY_HEADER": "h3ader-value"}.items():
        monkeypatch.setenv(name, value)


class Listening:
    """A fake server that notes the headers and the query of every call."""

    def __init__(self, server):
        self.server, self.headers, self.queries = server, [], []
        routes = server.add_routes

        def add_routes(app):
            async def note(request, handler):
                self.headers.append(request.headers.copy())
                self.queries.append(dict(request.query))
                return await handler(request)

            from aiohttp import web

            app.middlewares.append(web.middleware(note))
            routes(app)

        server.add_routes = add_routes


@pytest.mark.parametrize("engine", ["server", "batch"])
@pytest.mark.parametrize("has_key", [True, False])
def test_both_engines_send_the_same_headers(tmp_path, variables, engine, has_key):
    write_texts(tmp_path, 2)
    server = FakeBatch(lambda body: "1. It is gone.") if engine == "batch" else FakeOpenAI()
    heard = Listening(server)
    key = {"api_key_env": "MY_KEY"} if has_key else {}
    with server:
        asked = config_of(
            tmp_path, server, engine=engine, prompts="paper", **key, headers={"api-key": "MY_HEADER"}
        )
        try:
            label(asked)
        except AngleError:
            assert engine == "batch"
    assert heard.headers
    expected = {"api-key": "h3ader-value"}
    if has_key:
        expected |= {"Authorization": "Bearer sk-secret-1234"}
        expected |= {"OpenAI-Organization": "org-9", "OpenAI-Project": "proj-9"}
    names = ("Authorization", "OpenAI-Organization", "OpenAI-Project", "api-key")
    for headers in heard.headers:
        assert {name: headers[name] for name in names if name in headers} == expected
    for path in filter(lambda path: path.is_file(), (tmp_path / "run").rglob("*")):
        assert not any(value in path.read_text() for value in ("h3ader-value", "sk-secret", "MY_HEADER"))


def test_the_value_of_a_header_is_shown_by_nobody(tmp_path, variables, caplog):
    write_texts(tmp_path, 2)
    fault = Fault(401, message="no rights for h3ader-value")
    with FakeOpenAI(always=fault) as server, pytest.raises(CredentialsError) as raised:
        label(config_of(tmp_path, server, headers={"api-key": "MY_HEADER"}))
    assert "[key]" in str(raised.value)
    assert "h3ader" not in str(raised.value) + caplog.text


@pytest.mark.parametrize("text", ["api-key", "api-key=sk-123", "=X", "a b=X", "api-key="])
def test_a_header_is_named_with_its_variable_and_never_shown(text):
    look = EngineConfig.__dataclass_fields__["headers"].metadata["option"]
    with pytest.raises(InputError, match="NAME=VARIABLE") as raised:
        look.read([text])
    assert "sk-123" not in str(raised.value)
    assert look.read(["api-key=MY_HEADER"]) == {"api-key": "MY_HEADER"}


def test_a_variable_that_is_not_set_is_said(monkeypatch):
    monkeypatch.delenv("MY_HEADER", raising=False)
    spec = choose_annotator(EngineConfig("m", base_urls=("http://h/v1",), headers={"api-key": "MY_HEADER"}))
    with pytest.raises(CredentialsError, match="--header api-key: its environment variable is not set"):
        service_headers(spec)


def test_the_version_of_an_address_stays_behind_its_path(tmp_path, variables):
    (address,) = choose_annotator(EngineConfig("m", base_urls=(AZURE,))).addresses
    assert Endpoint(address, Limiter(1), Form()).url == AZURE.replace("?", "/chat/completions?")
    write_texts(tmp_path, 1)
    for server in (FakeOpenAI(), FakeBatch(lambda body: "1. It is gone.", held=True)):
        heard = Listening(server)
        with server:
            engine = "batch" if isinstance(server, FakeBatch) else "server"
            urls = (f"{server.url}?api-version=2024-10-21",)
            asked = {"base_urls": urls, "engine": engine, "out": tmp_path / engine, "prompts": "paper"}
            try:
                label(config_of(tmp_path, server, **asked))
            except StoppedError:
                assert engine == "batch"
        assert {query.get("api-version") for query in heard.queries} == {"2024-10-21"}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("http://h/v1/chat/completions/", "http://h/v1"),
        (AZURE.replace("?", "/chat/completions?"), AZURE),
        ("http://h/v1/", "http://h/v1/"),
    ],
)
def test_an_endpoint_is_taken_for_its_address(given, used):
    assert choose_annotator(EngineConfig("m", base_urls=(given,))).addresses == (used,)


@pytest.mark.parametrize("query", ["key=AIza123", "api-version=1&key=AIza123", "api-version=1#x"])
def test_what_may_be_a_key_in_an_address_is_refused_and_not_shown(query):
    with pytest.raises(InputError, match=r"\? and #; name a key with") as raised:
        choose_annotator(EngineConfig("m", base_urls=(f"http://h/v1?{query}",)))
    assert "AIza" not in str(raised.value)
