"""Texts fetched again from a fake GitHub, deletions honoured."""

import copy
import json
import shutil

import pytest
import typer
from fake_gis_store import store_world
from fake_github import FakeGitHub, Fault
from fake_github_world import make_world
from programs import run_here

from angle_data.errors import InputError, StoppedError
from angle_data.gis.build.build import build_gis
from angle_data.gis.command import rehydrate
from angle_data.gis.crawl.github import GitHubClient
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.rehydrate import read_dataset, rehydrate_dataset

WORLD = make_world(4, repos=2, issues=70, duplicates=0.3, comments=1.0)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """The same pairs with texts and without."""
    found = []
    for ids_only in (False, True):
        out = tmp_path_factory.mktemp("gis")
        store_world(WORLD, out)
        found.append(build_gis(GisConfig(out, ids_only=ids_only)).dataset)
    return found


def run(github, data, out, **options):
    return rehydrate_dataset(data, out, GitHubClient(github.url, **options, sleep=lambda _: None))


def test_the_texts_come_back_as_they_were(sets, tmp_path):
    (whole, ids), out = sets, tmp_path / "json"
    app = typer.Typer()
    app.command()(rehydrate)
    with FakeGitHub(WORLD) as github:
        command = ("--data", ids, "--api-url", github.url)
        done, table, quiet = (
            run_here(app, *command, "--out", tmp_path / options[0], *options[1:])
            for options in (("json", "--json"), ("table",), ("quiet", "--quiet"))
        )
    summary = json.loads(done.stdout)
    assert list(read_dataset(out / "dataset")) == list(read_dataset(whole))
    assert (summary["kept"], summary["dropped"], summary["edited"]) == (summary["rows"], {}, 0)
    # Two repositories, and their issues in one query each for every fifty.
    assert summary["requests"] <= 2 + 2 * 2
    assert sorted(path.name for path in out.iterdir()) == [".lock", "dataset"]
    assert f"pairs     {summary['kept']:,} of {summary['rows']:,}" in table.stdout
    assert quiet.stdout == ""


def test_deleted_moved_and_edited_issues(sets, tmp_path):
    rows = [row for _, row in read_dataset(sets[1])]
    world = copy.deepcopy(WORLD)
    repo, other = world.repos.values()
    own = sorted({row[f"number{n}"] for row in rows if row["repo"] == repo.full_name for n in "12"})
    # The other repository has an issue of this number: only the name tells that it is another one.
    known = {row[f"number{n}"] for row in rows if row["repo"] == other.full_name for n in "12"}
    moved = next(n for n in own[1:] if n not in known and not other.issues[n].is_pull)
    deleted, edited = (n for n in own if n != moved and n in (own[0], own[-1]))
    del repo.issues[deleted]
    repo.deleted.add(deleted)
    del repo.issues[moved]
    repo.moved[moved] = (other.id, moved)
    repo.issues[edited].title = "Written anew"
    world.touch()

    def touches(row, *numbers):
        return row["repo"] == repo.full_name and not {row["number1"], row["number2"]}.isdisjoint(numbers)

    with FakeGitHub(world) as github:
        summary = run(github, sets[1], tmp_path)
    lost = [row for row in rows if touches(row, deleted, moved)]
    assert summary["dropped"] == {"gone": len(lost)}
    assert summary["kept"] == len(rows) - len(lost)
    changed = [row for row in rows if row not in lost and touches(row, edited)]
    assert summary["edited"] == len(changed) > 0
    found = {(row["url1"], row["url2"]): row for _, row in read_dataset(summary["dataset"])}
    assert found.keys() == {(row["url1"], row["url2"]) for row in rows if row not in lost}
    texts = [value for row in found.values() for name, value in row.items() if name.startswith("text")]
    assert any(text.startswith("Written anew") for text in texts)
    card = (summary["dataset"] / "README.md").read_text()
    assert f"left out since: gone {len(lost):,}; with a text edited since: {len(changed)}." in card
    assert card.startswith("---\n")
    assert "The texts are not included." not in card
    assert "`text1`" in card
    assert "`hash1`" not in card


def test_a_repository_that_is_gone(sets, tmp_path, caplog):
    world = copy.deepcopy(WORLD)
    name = next(iter(world.repos.values())).full_name
    del world.repos[next(iter(world.repos))]
    with FakeGitHub(world) as github:
        summary = run(github, sets[1], tmp_path)
    assert summary["dropped"] == {"gone": sum(row["repo"] == name for _, row in read_dataset(sets[1]))}
    assert f"{name}: 404 Not Found; its pairs are left out" in caplog.text


def test_a_stopped_run_goes_on(sets, tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_TOKEN")
    with FakeGitHub(WORLD, faults=[Fault("status", 200)]) as github:
        with pytest.raises(InputError, match="not answer like GitHub's API; check --api-url"):
            run(github, sets[1], tmp_path)
        with pytest.raises(StoppedError):
            run(github, sets[1], tmp_path, max_requests=20)
        assert not (tmp_path / "dataset").exists()
        run(github, sets[1], tmp_path)
        asked = [seen.path for seen in github.seen if seen.route == "issue"]
    assert len(asked) == len(set(asked))
    assert list(read_dataset(tmp_path / "dataset")) == list(read_dataset(sets[0]))


def test_the_folder_of_a_gis_may_be_given_for_its_data_set(sets, tmp_path):
    with FakeGitHub(WORLD) as github:
        run(github, sets[1].parent, tmp_path)
    assert list(read_dataset(tmp_path / "dataset")) == list(read_dataset(sets[0]))


@pytest.mark.parametrize("out", ["", "dataset"])
def test_no_data_set_is_written_over(sets, tmp_path, out):
    shutil.copytree(sets[1], tmp_path / "dataset")
    with pytest.raises(InputError, match="already holds a data set; choose another --out"):
        rehydrate_dataset(tmp_path / "dataset", tmp_path / out, GitHubClient())
    with pytest.raises(InputError, match="has its texts already"):
        rehydrate_dataset(sets[0], tmp_path / "new", GitHubClient())
    assert list(read_dataset(tmp_path / "dataset")) == list(read_dataset(sets[1]))
