from pathlib import Path

import pytest

from angle_data.errors import InputError
from angle_data.gis.crawl.selection import parse_repo, read_repos

RECIPE = Path(__file__).parents[4] / "recipes" / "gis-paper-repositories.txt"


NO_NAMES = (
    "https://ghe.example.com/team/tool/", "https://gitlab.com/group/proj", "git@github.com:psf/requests.git",
    "numpy", "a/b/c", "https://github.com/psf", "bump tech/glide", "-a/b", "a/..",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("numpy/numpy", "numpy/numpy"),
        ("mrdoob/three.js", "mrdoob/three.js"),
        ("https://github.com/psf/requests", "psf/requests"),
        ("https://github.com/psf/requests.git", "psf/requests"),
        ("http://www.github.com/psf/requests/issues?q=is%3Aopen", "psf/requests"),
        ("https://me:secret@GitHub.com/psf/requests", "psf/requests"),
        *((text, None) for text in NO_NAMES),
    ],
)
def test_names_and_addresses_become_owner_and_name(text, name):
    assert parse_repo(text) == name


def test_comments_blanks_and_repetitions_are_left_out_and_bad_lines_named_by_number(tmp_path, caplog):
    path = tmp_path / "list.txt"
    path.write_text("# ours\n\na/b  # first\nnonsense\nhttps://github.com/A/B\nc/d\n")

    assert read_repos(path) == ("a/b", "c/d")
    assert f"{path}:4: 'nonsense' is not a repository; skipped" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lists no repository; write"),
        ("# only a comment\n", "lists no repository; write"),
        ("\nnonsense\nmore\n", "list.txt:2: 'nonsense' is not a repository; write"),
        (b"\xff\xc0owner/name", "not UTF-8"),
    ],
)
def test_a_list_without_a_repository_is_an_error(tmp_path, content, message):
    path = tmp_path / "list.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        read_repos(path)


def test_addresses_must_lie_on_the_server_that_is_asked(tmp_path, caplog):
    path = tmp_path / "list.txt"
    lines = ("a/b", "https://ghe.acme.com/c/d", "https://github.com/e/f", "https://x:pw@gitlab.com/g/h")
    path.write_text("\n".join(lines))
    found = read_repos(path, "https://ghe.acme.com/api/v3")
    assert found == ("a/b", "c/d", "e/f")
    assert "list.txt:4: 'https://***@gitlab.com/g/h'" in caplog.text
    assert "pw" not in caplog.text
    assert read_repos(path, "https://api.acme.ghe.com") == ("a/b", "e/f")
    path.write_text("https://acme.ghe.com/a/b\n")
    assert read_repos(path, "https://api.acme.ghe.com") == ("a/b",)


def test_the_papers_repositories_can_be_read_without_its_typo_and_old_names(caplog):
    found = read_repos(RECIPE)
    assert len(found) == 55
    assert caplog.text == ""
    assert {"bumptech/glide", "jax-ml/jax", "fastapi/fastapi"} <= set(found)
    assert not {"bump.tech/glide", "google/jax", "tiangolo/fastapi"} & set(found)
