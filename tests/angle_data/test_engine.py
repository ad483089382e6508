"""The settings of the asking: ranges, prices, shards, and how command-line options become them."""

import pytest

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import Sampling
from angle_data.annotators.models import MODELS, SERVICES, Price
from angle_data.errors import InputError
from angle_data.labelling.engine import EngineConfig, model_identity
from angle_data.labelling.options import engine_config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tokens": -5}, "--max-tokens must be at least 1, got -5"),
        ({"concurrency": 0}, "--concurrency must be at least 1, got 0"),
        ({"max_tokens_total": 0}, "--max-tokens-total must be at least 1, got 0"),
        ({"requests_per_minute": 0.0}, "--requests-per-minute must be more than 0, got 0.0"),
        ({"tokens_per_minute": float("nan")}, "--tokens-per-minute must be more than 0, got nan"),
        ({"max_usd": float("inf")}, "--max-usd must be more than 0, got inf"),
        ({"temperature": 2.5}, "--temperature must be between 0 and 2, got 2.5"),
        ({"temperature": float("nan")}, "--temperature must be between 0 and 2, got nan"),
        ({"usd_per_million": (1.0, -1.0)}, "--usd-per-million must hold two prices"),
        ({"shard": (0, 2)}, "--shard i/n needs 1 <= i <= n, got 0/2"),
        ({"shard": (3, 2)}, "--shard i/n needs 1 <= i <= n, got 3/2"),
    ],
)
def test_settings_out_of_range(changes, message):
    with pytest.raises(InputError, match=message):
        EngineConfig("m", **changes)


def price(model, **options):
    config = EngineConfig(model, **options)
    return config.price(config.spec())


def test_prices():
    assert price("chatgpt") == Price(0.15, 0.60)
    assert price("chatgpt", engine="batch") == Price(0.075, 0.30)
    assert price("chatgpt", checkpoint="gpt-x") is None
    assert price("chatgpt", base_urls=("http://h/v1",)) is None
    assert price("chatgpt", base_urls=("https://api.openai.com/v1",)) == Price(0.15, 0.60)
    assert price("chatglm", base_urls=("https://open.bigmodel.cn/api/paas/v4",)) == Price(0.0, 0.0)
    assert price("llama", base_urls=("http://h/v1",)) is None
    assert price("llama", base_urls=("http://h/v1",), usd_per_million=(1.0, 2.0)) == Price(1.0, 2.0)
    assert Price(0.15, 0.60).of(2_000_000, 1_000_000) == pytest.approx(0.90)


def test_a_money_limit_without_a_price_is_an_error():
    with pytest.raises(
        InputError, match="that of 'gpt-x' is not known: give --usd-per-million IN,OUT, or bound"
    ):
        price("chatgpt", checkpoint="gpt-x", max_usd=1.0)
    assert price("chatgpt", max_usd=1.0) is not None


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_known_price_where_it_is_public(name):
    alias = MODELS[name]
    if alias.host is not None:
        assert alias.checkpoint_at(alias.host) in SERVICES[alias.host].prices
    for host, checkpoint in alias.hosted.items():
        assert checkpoint in SERVICES[host].prices


def test_every_text_is_in_one_shard_however_it_is_written():
    texts = [f"Node {i} has left." for i in range(300)]
    shards = [EngineConfig("m", shard=(i, 4)) for i in (1, 2, 3, 4)]
    counts = [sum(shard.takes(text) for text in texts) for shard in shards]
    assert sum(counts) == 300
    assert min(counts) > 40
    for text in texts:
        assert [s.takes(text) for s in shards] == [s.takes(f'  "{text.upper()}" ') for s in shards]
        assert sum(shard.takes(text) for shard in shards) == 1
    assert EngineConfig("m").takes("anything")


def test_the_revision_is_part_of_the_model():
    assert model_identity(AnnotatorSpec("n", "offline", "org/model")) == "org/model"
    assert model_identity(AnnotatorSpec("n", "offline", "org/model", revision="r1")) == "org/model@r1"


def test_sampling_follows_the_settings():
    config = EngineConfig("m", temperature=0.0, max_tokens=9, seed=4)
    assert config.sampling({"type": "object"}) == Sampling(0.0, 9, 4, {"type": "object"})


def test_options_become_settings():
    given = {"base_url": ["http://a/v1", "http://b/v1"], "model": "m", "texts": "ignored", "max_usd": 2.0}
    given |= {
        "engine_option": ["max_model_len=4096", "dtype=float16", "a=b=c", "on=true"],
        "shard": "2/8",
        "usd_per_million": "0.15,0.6",
    }
    assert engine_config(given) == EngineConfig(
        "m",
        base_urls=("http://a/v1", "http://b/v1"),
        engine_options={"max_model_len": 4096, "dtype": "float16", "a": "b=c", "on": True},
        shard=(2, 8),
        usd_per_million=(0.15, 0.6),
        max_usd=2.0,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard": "2"}, "--shard '2': give I/N, such as 1/8"),
        ({"shard": "a/b"}, "--shard 'a/b': give I/N"),
        ({"usd_per_million": "1,2,3"}, "--usd-per-million '1,2,3': give two prices"),
        ({"engine_option": ["novalue"]}, "--engine-option 'novalue': give KEY=VALUE"),
        ({"engine_option": ["a b=1"]}, "--engine-option 'a b=1': give KEY=VALUE"),
    ],
)
def test_options_that_cannot_be_read(options, message):
    given = {"model": "m", "base_url": None, "engine_option": None, "shard": None, "usd_per_million": None}
    with pytest.raises(InputError, match=message):
        engine_config(given | options)
