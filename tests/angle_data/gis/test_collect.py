"""A crawl reads what was said, and the build after it reads no comment again."""

from fake_github import FakeGitHub
from fake_github_crawl import config_for
from fake_github_world import make_world

from angle_data.gis.build.build import build_gis
from angle_data.gis.collect import crawl_repos
from angle_data.gis.comments import readings
from angle_data.gis.comments.reading import read_comment


def test_the_build_reads_no_comment_that_the_crawl_read(tmp_path, monkeypatch):
    seen = []

    def read(body, *rest, **more):
        seen.append(body)
        return read_comment(body, *rest, **more)

    monkeypatch.setattr(readings, "read_comment", read)
    with FakeGitHub(make_world(1, repos=2, issues=80, duplicates=0.4)) as github:
        names = [repo.full_name for repo in github.world.repos.values()]
        config = config_for(github, tmp_path, *names)
        crawl_repos(config)
        assert seen
        seen.clear()
        built = build_gis(config)
        assert seen == []
        (config.out / readings.FILE_NAME).unlink()
        again = build_gis(config)
    assert seen
    assert again.report == built.report
