"""Negative pairs, their candidates, and the ranking behind the hard ones."""

from collections import Counter
from datetime import date

import pytest
from fake_gis_store import make_comment, make_event, make_issue, write_store

from angle_data.gis.build.build import build_gis
from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import scan_store
from angle_data.gis.build.links import denied_pairs, judge_links, unordered
from angle_data.gis.build.near import near_texts
from angle_data.gis.build.negatives import Candidates, draw_negatives
from angle_data.gis.build.positives import find_clusters, positive_pairs
from angle_data.gis.build.splits import Places
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store
from angle_data.gis.rehydrate import read_dataset

TOPICS = [" ".join(f"t{topic}w{i}" for i in range(8)) for topic in range(6)]


def text(number):
    """Words of a topic and of its own."""
    own = " ".join(f"n{number}w{i}" for i in range(12))
    return f"{TOPICS[number % 6]} {own}"


ISSUES = [make_issue(n, f"Issue number{n}", text(n)) for n in range(1, 121)]
MARKS = [make_comment(1_000 + n, n, f"Duplicate of #{n - 30}", 130) for n in range(31, 61)]
DENIAL = make_comment(2_000, 33, "Not a duplicate of #4.", 131)
TENTATIVE = make_comment(2_001, 35, "Is this a duplicate of #36?", 131, role="NONE", author="joe")
MENTION = make_comment(2_002, 37, "Related to #38", 131)


def week(head):
    return date.fromisoformat(head.created_at[:10]).isocalendar()[:2]


def labelled(*names):
    """The first sixty issues, with these labels in turn."""
    label = [(names[n % len(names)],) for n in range(61)]
    return {f"n{n}": make_issue(n, f"Issue number{n}", text(n), labels=label[n]) for n in range(1, 61)}


class World:
    """Candidates over a small store; odd originals are in train, even ones in test."""

    def __init__(self, store):
        self.scan = scan_store(store)
        texts = Texts(store)
        self.links = judge_links(self.scan, texts)
        self.clusters = find_clusters(self.links)
        pairs, _, _ = positive_pairs(self.clusters, texts, most=10, seed=0)
        self.near = near_texts(texts, [])
        self.places = {}
        self.positives = {"train": [], "test": []}
        self.denied, self.mute = denied_pairs(self.scan)
        for pair in pairs:
            self.positives["train" if pair.other[1] % 5 else "test"].append(pair)
        for edge in self.clusters.edges:
            for node in (edge.duplicate, edge.canonical):
                self.places[node] = "train" if edge.canonical[1] % 5 else "test"
                self.near.add(node)
        for pair in self.denied:
            for node in (pair.one, pair.other):
                self.places.setdefault(node, "train")
        places = Places(self.places)
        self.candidates = Candidates(self.scan, self.clusters, self.links, texts, self.near, places)

    def draw(self, ratio=1.0, seed=0):
        return draw_negatives(self.positives, self.candidates, self.denied, ratio=ratio, seed=seed)


@pytest.fixture
def world(tmp_path):
    """A function that makes the world, with changes to its issues by number."""
    opened = []

    def make(comments=(DENIAL, TENTATIVE, MENTION), events=(), extra=(), **changed):
        issues = [*(changed.get(f"n{issue.number}", issue) for issue in ISSUES), *extra]
        rows = {"issues": issues, "comments": [*MARKS, *comments], "events": events}
        opened.append(Store.open(write_store(tmp_path / str(len(opened)), **rows)))
        return World(opened[-1])

    yield make
    for store in opened:
        store.database.close()


@pytest.fixture
def plain(world):
    """The world without changes."""
    return world()


def test_as_many_as_wanted_in_the_shares_wanted(plain):
    found, dropped = plain.draw()
    assert {name: len(pairs) for name, pairs in found.items()} == {"train": 23, "test": 6}
    kinds = Counter(pair.kind for pair in found["train"])
    # Of the two tenths that may be denied there is one pair; random ones are never more than a third.
    assert kinds == {"explicit_non_duplicate": 1, "hard": 14, "random": 8}
    assert dropped == {"no_partner": 1}


def test_a_large_draw_keeps_to_the_rules(plain):
    """Nothing tied, no pair twice, no issue in two splits, no partner too often, the shortage counted."""
    found, dropped = plain.draw(ratio=20.0)
    linked = {unordered(edge.duplicate, edge.canonical) for edge in plain.clusters.edges}
    drawn = [unordered(pair.one, pair.other) for pairs in found.values() for pair in pairs]
    assert len(drawn) + dropped["no_partner"] == 600 > len(drawn)
    assert len(set(drawn)) == len(drawn)
    assert not (linked | {((1, 35), (1, 36)), ((1, 37), (1, 38))}) & set(drawn)
    for one, other in drawn:
        assert plain.clusters.every.leader(one) != plain.clusters.every.leader(other)
    used = {
        name: {node for pair in [*plain.positives[name], *pairs] for node in (pair.one, pair.other)}
        for name, pairs in found.items()
    }
    assert not used["train"] & used["test"]
    assert max(Counter(pair.other for pairs in found.values() for pair in pairs).values()) == 4


def test_an_issue_marked_as_duplicate_of_something_unknown_is_left_out(world):
    marked = make_issue(100, "Issue number100", text(100), labels=("duplicate",))
    w = world(n100=marked, n101=make_issue(101, text(101), is_pull=True), n102=make_issue(102, "Crash"))
    usable = [w.candidates.usable((1, n)) for n in (99, 100, 101, 102, 999)]
    assert usable == [True, False, False, False, False]
    # What a comment says is enough, where it leads nowhere.
    lost = make_comment(2_010, 99, "Duplicate of #9999", 131)
    assert not world(comments=(lost,)).candidates.usable((1, 99))
    # Of this one the original is known.
    assert world(n31=make_issue(31, text(31), state_reason="duplicate")).candidates.usable((1, 31))


def test_a_copy_of_a_text_in_another_split_is_not_taken(world):
    copied = make_issue(100, ISSUES[4].title, ISSUES[4].body)
    w = world(n100=copied)
    assert w.places[1, 5] == "test"
    assert not w.candidates.place((1, 100), "train")
    assert w.candidates.place((1, 100), "test")
    assert not w.candidates.place((1, 100), "train")


MORE = "and a few more words"
WORDS_OF_1 = text(1).split()


@pytest.mark.parametrize(
    ("one", "title", "body", "fits"),
    [
        (39, ISSUES[38].title, f"{text(39)} {MORE}", False),
        (39, "Another", f"{TOPICS[3]} {MORE} about something else altogether", True),
        # 31 is a duplicate of 1: the words of 1 in another order, and none of those of 31.
        (31, "Issue number1", " ".join(WORDS_OF_1[::-1]), False),
        (31, "Issue number1", " ".join(WORDS_OF_1[:6]), True),
    ],
)
def test_a_partner_has_other_words_than_the_whole_cluster(world, one, title, body, fits):
    assert world(n100=make_issue(100, title, body)).candidates.fits((1, one), (1, 100), "train") is fits


@pytest.mark.parametrize("original", [1, 2])
def test_the_same_two_texts_never_have_both_labels(world, original):
    # 100 is a copy of the original of 31 that nobody marked; 2 is one that has a duplicate of its own.
    copy = {f"n{n}": make_issue(n, ISSUES[0].title, ISSUES[0].body) for n in {100, original}}
    w = world(**copy)
    assert not w.candidates.fits((1, 31), (1, 100), "train")
    assert not w.candidates.fits((1, 31), (1, original), "train")
    assert w.candidates.tied((1, 31), (1, original))
    found, _ = w.draw(ratio=6.0)
    same = {(1, 1), (1, 100), (1, original)}
    assert not [p for pairs in found.values() for p in pairs if p.one == (1, 31) and p.other in same]


def test_a_copy_of_what_may_be_the_same_problem_is_no_partner(world):
    """100 is a copy of 36, which 35 may be a duplicate of."""
    copy = make_issue(100, ISSUES[35].title, ISSUES[35].body)
    assert not world(n100=copy).candidates.fits((1, 35), (1, 100), "train")
    assert world((), n100=copy).candidates.fits((1, 35), (1, 100), "train")


def test_an_issue_that_outlives_another_is_not_said_to_differ(world):
    w = world(comments=[make_comment(2_006, 33, "#4 is fixed and this still happens.", 131)])
    assert (w.denied, w.mute) == ([], {"outlived": 1})


def test_partners_of_plain_pairs(plain):
    """They occur in positive pairs; random ones have the age of the original, hard ones share words."""
    original = {pair.one: pair.other for pair in plain.positives["train"]}
    drawn = plain.draw()[0]["train"]
    assert all(pair.other in plain.candidates.positive for pair in drawn)
    for pair in [*drawn, *plain.draw(ratio=2.0)[0]["train"]]:
        if pair.kind == "random":
            assert pair.other[1] // 28 == original[pair.one][1] // 28  # months of 28 days
        if pair.kind == "hard":
            how, _, rank = pair.evidence.partition(":")
            assert how == "subject" or pair.one[1] % 6 == pair.other[1] % 6
            assert 3 <= int(rank) <= 50


def test_denials_of_removed_marks(world):
    events = [make_event("a", "marked", 90, 91, 130), make_event("b", "unmarked", 90, 91, 131)]
    w = world(comments=(DENIAL, make_comment(2_005, 34, "Not a duplicate of #999", 131)), events=events)
    assert {(pair.one[1], pair.other[1]) for pair in w.denied} == {(33, 4), (90, 91)}
    assert w.mute == {"missing": 1}
    drawn = {(p.one, p.other): p for p in w.draw(ratio=2.0)[0]["train"] if p.kind == "explicit_non_duplicate"}
    assert drawn.keys() == {((1, 33), (1, 4)), ((1, 90), (1, 91))}
    assert drawn[(1, 33), (1, 4)].evidence_url == DENIAL.url
    # Once marked, it is no partner that chance may draw.
    assert not w.candidates.fits((1, 90), (1, 91), "train")


def test_a_denied_pair_in_one_cluster_is_no_negative(world):
    joe = make_comment(2_006, 34, "Not a duplicate of #4.", 131, role="NONE", author="joe")
    again = make_comment(2_007, 34, "It is. Duplicate of #4.", 132)
    w = world(comments=(joe, again))
    assert ((1, 34), (1, 4)) in {(pair.one, pair.other) for pair in w.denied}
    kinds = {pair.kind for pairs in w.draw()[0].values() for pair in pairs}
    assert kinds == {"hard", "random"}


# A statement about a number that moved to 38: no thread names 38 itself.
MOVED = make_issue(200, "", gone="transferred:org/one#38")
RETRACTION = make_comment(2_021, 39, "Sorry, not a dup after all.", 132)


@pytest.mark.parametrize(
    ("comments", "tied"),
    [
        ((make_comment(2_020, 39, "Is this a duplicate of #200?", 131, role="NONE", author="joe"),), True),
        ((make_comment(2_020, 39, "Duplicate of #200", 131), RETRACTION), False),
    ],
)
def test_what_was_said_of_two_issues_keeps_them_apart(world, comments, tied):
    plain = world().candidates
    assert plain.fits((1, 39), (1, 38), "train")
    assert not plain.fits((1, 37), (1, 38), "train"), "one names the other"
    w = world(comments=comments, extra=(MOVED,))
    assert not w.scan.mentioned((1, 39), (1, 38))
    assert not w.candidates.fits((1, 39), (1, 38), "train")
    assert w.candidates.tied((1, 39), (1, 38)) is tied


def test_a_denied_pair_needs_both_issues_in_the_split_and_both_usable(world):
    # 5 is in the test split, 33 in train.
    apart = make_comment(2_040, 33, "Not a duplicate of #5.", 131)
    unknown = make_comment(2_041, 34, "Not a duplicate of #99.", 131)
    marked = make_issue(99, "Issue number99", text(99), labels=("duplicate",))
    w = world(comments=(apart, unknown), n99=marked)
    assert {(pair.one[1], pair.other[1]) for pair in w.denied} == {(33, 5), (34, 99)}
    found, dropped = w.draw(ratio=2.0)
    assert "explicit_non_duplicate" not in {pair.kind for pairs in found.values() for pair in pairs}
    denials = {reason: count for reason, count in dropped.items() if "denial" in reason}
    assert denials == {"denial_two_splits": 1, "denial_unusable": 1}


def test_clusters_said_to_differ_lie_in_one_split(tmp_path):
    """Then the pair can be kept; most pairs of clusters would lie in two."""
    numbers = range(1, 201)
    issues = [make_issue(n, f"Issue number{n}", text(n)) for n in numbers]
    marks = [make_comment(n, n, f"Duplicate of #{n - 100}", 900) for n in range(101, 201)]
    denials = [make_comment(1_000 + n, n, f"Not a duplicate of #{n + 1}", 901) for n in range(101, 200, 10)]
    path = write_store(tmp_path, issues=issues, comments=[*marks, *denials])
    summary = build_gis(GisConfig(path.parent, ratios=(0.5, 0.25, 0.25)))
    kinds = [row["kind"] for _, row in read_dataset(summary.dataset)]
    assert kinds.count("explicit_non_duplicate") >= 8
    assert "denial_two_splits" not in summary.report["negatives"]["dropped"]


def test_hard_partners_share_as_many_words_as_the_positive_pair_or_its_subject(world):
    # Of many that are equally near, few are found by subject alone: one draw may have none.
    worlds = [(seed, world(**labelled("area0", "area1", "area2", "area3"))) for seed in range(4)]
    drawn = [pair for seed, w in worlds for pair in w.draw(seed=seed)[0]["train"] if pair.kind == "hard"]
    ways = {pair.evidence.partition(":")[0] for pair in drawn}
    assert ways == {"words", "subject"}
    for pair in drawn:
        if pair.evidence.startswith("subject"):
            one, other = (worlds[0][1].scan.heads[node] for node in (pair.one, pair.other))
            assert one.labels == other.labels or week(one) == week(other)


def test_denials_that_lead_nowhere_are_counted(tmp_path):
    issues = [make_issue(n) for n in (1, 2, 3)] + [make_issue(4, is_pull=True), make_issue(1, repo_id=2)]
    issues.append(make_issue(5, body="Not a duplicate of #2."))  # a hope of its reporter says nothing
    said = ["org/two#1", "#4", "#9", "#2", "#2", "#3"]
    comments = [make_comment(n, 3, f"Not a duplicate of {text}.", 20 + n) for n, text in enumerate(said)]
    repos = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two")]
    with Store.open(write_store(tmp_path, repos=repos, issues=issues, comments=comments)) as store:
        spoken, mute = denied_pairs(scan_store(store))
    assert [(pair.one, pair.other) for pair in spoken] == [((1, 3), (1, 2))]
    assert mute == {"other_repository": 1, "pull": 1, "missing": 1, "repeated": 1}


def test_random_partners_have_a_label_of_the_original(world):
    w = world(**labelled("a", "b"))
    original = {pair.one: pair.other for pairs in w.positives.values() for pair in pairs}
    drawn = [pair for pair in w.draw()[0]["train"] if pair.kind == "random"]
    alike = sum(w.scan.heads[p.other].labels == w.scan.heads[original[p.one]].labels for p in drawn)
    # How often a partner was used counts more.
    assert alike >= 0.8 * len(drawn)
    assert len(drawn) >= 8
