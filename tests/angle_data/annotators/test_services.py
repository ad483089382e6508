"""A model's name says where it is asked, and with which key; a name that says nothing is asked nowhere."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import config_of, write_texts

from angle_data.annotators import choice, models
from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import Price, price_of, services
from angle_data.annotators.spec import EngineConfig
from angle_data.annotators.transport import Form, service_headers
from angle_data.errors import CredentialsError, InputError
from angle_data.labelling.label import label
from angle_data.labelling.pilot import plan_label

ROOT = Path(__file__).parents[3]
SERVICES = {service.prefix.rstrip("/"): service for service in services()}
AZURE = "https://me.openai.azure.com/openai/v1"


@pytest.fixture(autouse=True)
def no_vllm(monkeypatch):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def choose(model, *urls, **options):
    return choose_annotator(EngineConfig(model, base_urls=urls, **options))


@pytest.mark.parametrize(
    ("model", "address", "key", "sent"),
    [
        ("gpt-4o-mini", "api.openai.com/v1", "OPENAI_API_KEY", "gpt-4o-mini"),
        ("o3-mini", "api.openai.com/v1", "OPENAI_API_KEY", "o3-mini"),
        ("chatgpt-4o-latest", "api.openai.com/v1", "OPENAI_API_KEY", "chatgpt-4o-latest"),
        ("ft:gpt-4o-mini:me::x1", "api.openai.com/v1", "OPENAI_API_KEY", "ft:gpt-4o-mini:me::x1"),
        ("openai/gpt-4o", "api.openai.com/v1", "OPENAI_API_KEY", "gpt-4o"),
        ("claude-sonnet-5", "api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-5"),
        ("anthropic/claude-x", "api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-x"),
        (
            "gemini-2.5-flash", "generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY",
            "gemini-2.5-flash",
        ),
        ("gemini/x", "generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "x"),
        ("deepseek-chat", "api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
        ("deepseek/deepseek-chat", "api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
        ("mistral-small-latest", "api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-small-latest"),
        ("mistral/open-x", "api.mistral.ai/v1", "MISTRAL_API_KEY", "open-x"),
        ("openrouter/qwen/q:free", "openrouter.ai/api/v1", "OPENROUTER_API_KEY", "qwen/q:free"),
        ("glm-4-air", "open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY", "glm-4-air"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["auto", "server"])
def test_a_name_says_where_it_is_asked_and_with_which_key(model, address, key, sent, engine):
    spec = choose(model, engine=engine)
    assert spec.addresses == (f"https://{address}",)
    assert (spec.engine, spec.api_key_env, spec.checkpoint) == ("server", key, sent)
    assert spec.dialect == ("glm" if key == "ZHIPUAI_API_KEY" else "openai")
    # The same address by hand brings the same key and name, and a variable of one's own counts more.
    assert choose(model, f"https://{address}").checkpoint == sent
    assert choose("other", f"https://{address}").api_key_env == key
    assert choose(model, api_key_env="MINE").api_key_env == "MINE"


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("my-model", {}, "'my-model' does not say where to ask, and no text is sent by guess: give --base-u"),
        ("my-model", {"engine": "server"}, "does not say where to ask"),
        ("my-model", {"engine": "batch"}, "does not say where to ask"),
        ("deepseek-r1:7b", {}, "does not say where to ask.* ollama/NAME"),
        ("gpt-oss-20b", {}, "does not say where to ask"),
        ("gpt-neo", {}, "does not say where to ask"),
        ("anthropic/", {}, "does not say where|has no public address"),
        ("openai/gpt-oss-20b", {}, "has no public address: start `vllm serve openai/gpt-oss-20b`"),
        ("mistralai/Mistral-7B", {}, "has no public address: start `vllm serve mistralai/Mistral-7B`"),
        (
            "azure/mini",
            {},
            f"Azure OpenAI has an address for each user; .*{AZURE[10:]}.*AZURE_OPENAI_API_KEY",
        ),
        ("claude-x", {"engine": "batch"}, "Batch API; Anthropic is asked with --engine server"),
    ],
)
def test_a_name_that_says_nothing_is_asked_nowhere(model, options, message):
    with pytest.raises(InputError, match=message) as raised:
        choose(model, **options)
    assert "\n" not in str(raised.value)


def test_the_refusal_lists_all_that_is_known():
    with pytest.raises(InputError) as raised:
        choose("my-model")
    for name, service in SERVICES.items():
        assert {*service.such_as} <= {*str(raised.value).split("known: ")[1].split(", ")}
        assert (f"{name}/NAME" in str(raised.value)) == (not service.strict)


def test_no_name_belongs_to_two_services():
    names = [
        "gpt-4o",
        "claude-x",
        "gemini-x",
        "deepseek-x",
        "mistral-x",
        "glm-4",
        *(f"{n}/x" for n in SERVICES),
    ]
    for name in names:
        assert sum(service.has(name) for service in SERVICES.values()) == (name != "openai/x"), name


@pytest.mark.parametrize(
    ("model", "at_proxy", "at_openai"),
    [
        ("gpt-4o", "gpt-4o", "https://api.openai.com/v1"),
        ("openai/gpt-4o", "openai/gpt-4o", "https://api.openai.com/v1"),
        ("claude-x", "claude-x", "https://api.anthropic.com/v1"),
        ("my-model", "my-model", None),
        ("org/name", "org/name", None),
        # The name of a service on the command line counts more than the environment.
        ("anthropic/claude-x", None, "https://api.anthropic.com/v1"),
        ("ollama/llama3", None, "http://localhost:11434/v1"),
    ],
)
def test_openai_base_url_takes_names_unless_it_is_openais(monkeypatch, model, at_proxy, at_openai):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example.org/v1")
    spec = choose(model)
    assert (spec.addresses == ("https://proxy.example.org/v1",)) == (at_proxy is not None)
    if at_proxy is not None:
        assert (spec.checkpoint, spec.api_key_env) == (at_proxy, None)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1/")
    if at_openai is None:
        with pytest.raises(InputError, match=r"does not say where to ask|has no public address"):
            choose(model)
    else:
        assert choose(model).addresses[0].rstrip("/") == at_openai


def test_ollama_needs_no_key_and_costs_nothing():
    spec = choose("ollama/llama3.1:8b", max_usd=1.0)
    assert (spec.addresses, spec.api_key_env) == (("http://localhost:11434/v1",), None)
    assert (spec.checkpoint, price_of(spec)) == ("llama3.1:8b", Price(0.0, 0.0))
    assert choose("ollama/a", "http://gpu:11434/v1").checkpoint == "a"
    assert choose("ollama/a", "http://proxy:4000/v1").checkpoint == "ollama/a"
    assert Form.of(spec).json == "bounded_schema"  # as llama.cpp wants it
    assert Form.of(choose("claude-x")).json == "json_schema"


def test_azure_is_asked_with_its_own_header(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret-of-azure")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-9")
    spec = choose("azure/mini", AZURE)
    assert (spec.checkpoint, spec.addresses) == ("mini", (AZURE,))
    assert service_headers(spec) == {"api-key": "secret-of-azure"}
    assert choose("m", AZURE, engine="batch").headers == {"api-key": "AZURE_OPENAI_API_KEY"}
    assert choose("azure/m", AZURE, headers={"x": "MINE"}).headers == {"x": "MINE"}
    assert choose("azure/m", AZURE, api_key_env="MINE").headers == {}
    # The key goes to Azure alone, and not in clear.
    for url in ("https://azure.example.org/v1", AZURE.replace("https", "http")):
        assert (choose("azure/m", url).headers, choose("azure/m", url).api_key_env) == ({}, None)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(CredentialsError, match="the environment variable AZURE_OPENAI_API_KEY is not set"):
        service_headers(spec)


@pytest.fixture
def stand_in(monkeypatch):
    """Puts a server in the place of a service, which is then known by the server's port."""

    def put(name, server):
        port = int(server.origin.rpartition(":")[2])
        known = [
            replace(each, port=port, address=server.url) if key == name else each
            for key, each in SERVICES.items()
        ]
        monkeypatch.setattr(models, "services", lambda: tuple(known))

    return put


KEYED = [
    name for name, service in SERVICES.items() if service.address and not service.free and name != "openai"
]


@pytest.mark.parametrize("name", KEYED)
def test_a_service_gets_its_own_key_and_nobody_elses(tmp_path, monkeypatch, caplog, stand_in, name):
    caplog.set_level("INFO")
    write_texts(tmp_path, 2)
    variable = SERVICES[name].api_key_env
    monkeypatch.setenv(variable, "the-right-key-1")
    for other, value in (("OPENAI_API_KEY", "key-of-openai"), ("OPENAI_ORG_ID", "org-9")):
        monkeypatch.setenv(other, value)
    with FakeOpenAI(key="the-right-key-1", model="some-model", extra=["thinking"]) as server:
        stand_in(name, server)
        asked = config_of(tmp_path, server, model=f"{name}/some-model", base_urls=(), prompts="paper")
        assert label(asked).counts["kept"] > 0
    assert {seen.body["model"] for seen in server.seen} == {"some-model"}
    assert service_headers(choose(f"{name}/some-model")) == {"Authorization": "Bearer the-right-key-1"}
    where = [line for line in caplog.messages if line.startswith("texts go to")]
    assert where == [f"texts go to {SERVICES[name]} ({server.url}), with the key in {variable}"]


@pytest.mark.parametrize("name", KEYED)
def test_a_wrong_or_missing_key_names_the_variable(tmp_path, monkeypatch, caplog, stand_in, name):
    caplog.set_level("INFO")
    write_texts(tmp_path, 2)
    variable = SERVICES[name].api_key_env
    monkeypatch.delenv(variable, raising=False)
    with FakeOpenAI(key="the-right-key-1", extra=["thinking"]) as server:
        stand_in(name, server)
        asked = config_of(tmp_path, server, model=f"{name}/m", base_urls=(), prompts="paper")
        with pytest.raises(CredentialsError, match=f"set the environment variable {variable}"):
            label(asked)
        plan = plan_label(asked)  # sends nothing, says where texts would go and what is missing
        assert f"texts go to {SERVICES[name]} ({server.url}), with the key in {variable}\n" in str(plan)
        assert f"set the environment variable {variable}" in caplog.text
        assert not server.seen
        monkeypatch.setenv(variable, "a-wrong-key-22")
        with pytest.raises(CredentialsError, match=f"check the key in {variable}"):
            label(asked)


def test_the_table_of_the_docs_is_that_of_the_file():
    page = (ROOT / "docs" / "annotators.md").read_text()
    for service in SERVICES.values():
        names = [*service.such_as, *([] if service.strict else [f"{service.prefix}NAME"])]
        address = service.address or f"--base-url {service.address_like}"
        key = f"`{service.api_key_env}`" if service.api_key_env else "none"
        row = f"| {', '.join(f'`{name}`' for name in names)} | {service}, `{address}` | {key} |"
        assert row in page, row
