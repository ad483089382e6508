"""What the tests of issues share: a token, an empty store."""

import pytest
from fake_github_crawl import TOKEN

from angle_data.gis.crawl.store import Store


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "crawl.sqlite") as opened:
        yield opened
