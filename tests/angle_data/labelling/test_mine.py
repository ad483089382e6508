"""Pairs among one's own texts: what is drawn, how evenly, and always the same."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.mine import KINDS, MineConfig, mine
from angle_data.labelling.texts import PairFile
from angle_data.text import jaccard, pair_key, words

THINGS = ["router", "backup", "invoice", "camera", "garden", "violin", "reactor", "harbour"]
DEEDS = ["stopped", "arrived", "was sold", "broke down", "is late", "was painted", "got lost", "burns"]
PLACES = ["in Lyon", "at night", "on Monday", "near the sea", "without warning", "for good"]


def sentences():
    """384 sentences that share their thing, their deed, their place, or nothing."""
    return [f"The {thing} {deed} {place}." for thing in THINGS for deed in DEEDS for place in PLACES]


def write(path: Path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def draw_new(out, **options):
    """What is drawn into a file that is not there yet."""
    out.unlink(missing_ok=True)
    return mine(MineConfig(out, **options)), [row for _, row in read_jsonl(out)]


def draw(tmp_path, texts, **options):
    return draw_new(tmp_path / "mined.jsonl", texts=write(tmp_path / "texts.jsonl", texts), **options)


def uses_of(rows):
    """How many pairs each text is in."""
    return Counter(text for row in rows for text in (row["text1"], row["text2"]))


def overlap(row):
    return jaccard(words(row["text1"]), words(row["text2"]))


def test_pairs_are_near_between_and_random(tmp_path):
    result, rows = draw(tmp_path, sentences(), n=400)
    assert all(list(row) == ["text1", "text2", "kind"] for row in rows)
    assert Counter(row["kind"] for row in rows) == result == {"near": 240, "between": 120, "random": 40}
    means = [np.mean([overlap(row) for row in rows if row["kind"] == kind]) for kind in KINDS]
    assert means[0] > means[1] + 0.05 > means[2] + 0.1
    assert PairFile(tmp_path / "mined.jsonl").count == 400  # as llm-score reads it


def test_every_text_takes_part_and_none_dominates(tmp_path):
    hub = "The router was painted near the sea without warning for good in Lyon on Monday."
    uses = uses_of(draw(tmp_path, [*sentences(), hub, "Zzz qqq.", "Utterly unlike."], n=400)[1])
    assert len(uses) == 387
    assert max(uses.values()) <= 5  # twice the mean, rounded up
    alike = [f"The router stopped in Lyon for good {i}." for i in range(100)]
    crowd, rows = draw(tmp_path, [*alike, *(f"{i}qx" for i in range(100))], n=200)  # half have no neighbours
    assert (len(uses_of(rows)), crowd["near"]) == (200, 120)
    assert len(uses_of(draw(tmp_path, sentences(), n=60)[1])) > 90


def test_the_order_of_the_rows_does_not_matter_and_the_seed_does(tmp_path):
    texts = sentences()
    _, first = draw(tmp_path, texts, n=300)
    random.Random(5).shuffle(texts)
    assert draw(tmp_path, texts, n=300)[1] == first
    assert draw(tmp_path, texts, n=300, seed=1)[1] != first


@pytest.mark.parametrize("texts", [sentences()[:40], [f"Word{i}" for i in range(40)], ["", *"abcdefg"] * 2])
def test_no_pair_comes_twice_up_to_all_there_are(tmp_path, texts):
    distinct = len({text for text in texts if text})
    possible = distinct * (distinct - 1) // 2
    for n in (1, distinct, possible - 1, possible):
        result, rows = draw(tmp_path, texts, n=n)
        keys = {pair_key(row["text1"], row["text2"]) for row in rows}
        assert len(keys) == len(rows) == n == sum(result.values())
        assert all(one != other for one, other in keys)
        assert n < distinct or len(uses_of(rows)) == distinct
    with pytest.raises(InputError, match=f"--n {possible + 1:,} is more than the {possible:,} pairs that"):
        draw(tmp_path, texts, n=possible + 1)
    assert len(draw(tmp_path, texts, n=None)[1]) == possible


def test_equal_texts_are_one(tmp_path):
    _, rows = draw(tmp_path, ["Disk full.", "disk  FULL", "Disk full.", "", "No route."], n=None)
    assert len(rows) == 1
    assert {rows[0]["text1"], rows[0]["text2"]} == {"Disk full.", "No route."}


def test_rare_words_count_more_and_scripts_without_spaces_have_neighbours(tmp_path):
    filler = [f"it was so and that is how number{i} came to be" for i in range(200)]
    wanted = [
        ("the quorum was lost", "quorum came back and all is well how so"),
        ("数据库连接超时", "应用的数据库连接断开"),
        ("restarts slowly", "unhurried resting"),  # by their first four letters
    ]
    _, rows = draw(tmp_path, [*filler, *(text for pair in wanted for text in pair)], n=300)
    near = {pair_key(row["text1"], row["text2"]) for row in rows if row["kind"] == "near"}
    assert {pair_key(*pair) for pair in wanted} <= near


def test_near_pairs_are_the_nearest_and_those_between_reach_from_there_to_the_farthest(tmp_path):
    """A hundred texts in a row; each has two neighbours at every distance, those at the ends one."""
    angles = np.arange(100) * 0.015
    np.save(tmp_path / "e.npy", np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float64))
    _, rows = draw(tmp_path, [f"text {i}" for i in range(100)], n=100, embeddings=tmp_path / "e.npy")
    apart = {kind: [] for kind in KINDS}
    for row in rows:
        apart[row["kind"]].append(abs(int(row["text1"].split()[1]) - int(row["text2"].split()[1])))
    assert set(apart["near"]) == {1, 2, 3}  # the three nearest; 3 at the ends alone
    assert apart["near"].count(3) <= 2
    assert min(apart["between"]) >= 4  # from the sixth on, where the third is the last near one
    assert {distance // 25 for distance in apart["between"]} >= {0, 1}


def test_neighbours_by_embeddings(tmp_path):
    """Rows belong to rows of the file, also blank and repeated ones; here words would say something else."""
    texts = [f"{'even' if i % 2 else 'odd'} one {chr(97 + i)}" for i in range(20)]
    angles = np.array([i // 2 for i in range(20)]) * 0.3  # texts 2k and 2k + 1 point one way
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    np.save(tmp_path / "e.npy", np.concatenate([vectors[:1] * 0, vectors[3:4], vectors]))
    _, rows = draw(tmp_path, ["", texts[3], *texts], n=40, embeddings=tmp_path / "e.npy")
    near = {pair_key(row["text1"], row["text2"]) for row in rows if row["kind"] == "near"}
    assert {pair_key(texts[i], texts[i + 1]) for i in range(0, 20, 2)} <= near
    assert len(uses_of(rows)) == 20
    np.save(tmp_path / "e.npy", vectors)
    with pytest.raises(InputError, match=r"one row for each of the 22 rows of --texts, not \(20, 2"):
        draw(tmp_path, ["", texts[3], *texts], n=9, embeddings=tmp_path / "e.npy")
    np.save(tmp_path / "e.npy", vectors * 0)
    with pytest.raises(InputError, match="rows of zeros or NaN"):
        draw(tmp_path, texts, n=5, embeddings=tmp_path / "e.npy")
    (tmp_path / "no.npy").write_bytes(b"x")
    for name, said in (("none.npy", "does not exist"), ("no.npy", "not a readable .npy")):
        with pytest.raises(InputError, match=said):
            draw(tmp_path, texts, n=5, embeddings=tmp_path / name)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, r"texts\.jsonl holds no texts"),
        (["One.", "one"], {}, "holds only one distinct text; a pair needs two"),
        (["One.", "Two."], {"n": 0}, "--n must be at least 1, got 0"),
        (["One.", "Two."], {"n": 2}, "--n 2 is more than the 1 pair that there are"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, texts, options, message):
    with pytest.raises(InputError, match=message):
        draw(tmp_path, texts, **options)
    assert not (tmp_path / "mined.jsonl").exists()


def test_only_the_very_same_pairs_are_written_over(tmp_path):
    draw(tmp_path, sentences()[:9], n=6)
    config = MineConfig(tmp_path / "mined.jsonl", tmp_path / "texts.jsonl", n=6)
    same = config.out.read_text()
    mine(config)
    assert config.out.read_text() == same
    for content in (same[: same.index("\n") + 1], same.replace("The", "A"), "my notes\n", same + "\n"):
        config.out.write_text(content)
        with pytest.raises(InputError, match=r"is there and holds something else: .* move it away, or give"):
            mine(config)
        assert config.out.read_text() == content
    config.out.unlink()
    config.out.mkdir()
    with pytest.raises(InputError, match="holds something else"):
        mine(config)
    with pytest.raises(InputError, match=r"must end in \.jsonl"):
        MineConfig(tmp_path / "mined.csv", tmp_path / "texts.jsonl")
    with pytest.raises(InputError, match="holds something else"):
        mine(MineConfig(tmp_path / "texts.jsonl", tmp_path / "texts.jsonl"))


def test_the_command_ends_with_a_table(tmp_path):
    texts = write(tmp_path / "texts.jsonl", sentences()[:50])
    arguments = ["mine", "--texts", str(texts), "--out", str(tmp_path / "m.jsonl"), "--n", "100"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0
    assert [line.split()[0] for line in said.stdout.splitlines()] == [*KINDS, "pairs"]
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["pairs"]["near"] == 60


def run_of(folder: Path, name: str, *, texts: int = 8, degrees=(5, 4, 3, 2, 1)):
    """A run folder in which an annotator wrote a sentence at each degree for every text."""
    rows = [
        {"source_id": f"t{i}", "source": f"Text {i}", "polarity": None, "degree": degree, "model": name,
         "text": f"{name} says {degree} of {i}", "key": f"{name}{i}"}
        for i in range(texts)
        for degree in degrees
    ]  # fmt: skip
    folder.mkdir()
    (folder / "candidates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def words_of(row):
    return [row[side].split() for side in ("text1", "text2")]


def test_pairs_of_what_was_written_are_of_one_text_and_each_text_in_turn(tmp_path):
    runs = run_of(tmp_path / "a", "Ann"), run_of(tmp_path / "b", "Bob")
    out = tmp_path / "written.jsonl"
    result, rows = draw_new(out, runs=runs, n=8 * 5 + 3)
    assert {row["kind"] for row in rows} == {"written"}
    assert all(one[-1] == other[-1] for one, other in map(words_of, rows))
    assert sorted(Counter(words_of(row)[0][-1] for row in rows).values()) == [5] * 5 + [6] * 3
    assert result == {"written": 43}
    assert len({pair_key(row["text1"], row["text2"]) for row in rows}) == 43
    before = out.read_bytes()
    mine(MineConfig(out, runs=runs[::-1], n=43))
    assert out.read_bytes() == before
    assert draw_new(out, runs=runs, n=43, seed=1)[0] == {"written": 43}
    assert out.read_bytes() != before


def test_another_seed_draws_from_other_texts(tmp_path):
    run, out = run_of(tmp_path / "a", "Ann", texts=2100), tmp_path / "written.jsonl"
    drawn = []
    for seed in (0, 1):
        drawn.append({words_of(row)[0][-1] for row in draw_new(out, runs=(run,), seed=seed)[1]})
        assert len(drawn[-1]) == 2000
    assert drawn[0] != drawn[1]
    assert not any({str(n) for n in range(2000)} == texts for texts in drawn)


def test_equal_sentences_are_one_and_a_pair_of_two_texts_comes_once(tmp_path):
    run, out = run_of(tmp_path / "a", "Ann", texts=3), tmp_path / "written.jsonl"
    file = run / "candidates.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()[:10]]
    loud = [row | {"source": "TEXT 0", "text": row["text"].upper().replace("OF 1", "OF 0")} for row in rows]
    file.write_text(file.read_text() + "".join(json.dumps(row) + "\n" for row in loud))
    assert draw_new(out, runs=(run,))[0] == {"written": 30}
    file.write_text(file.read_text().replace("of 1", "of 0").replace("of 2", "of 0"))
    assert draw_new(out, runs=(run,))[0] == {"written": 10}
    with pytest.raises(InputError, match="--n 11 is more than the 10 pairs that"):
        mine(MineConfig(out, runs=(run,), n=11))


def test_a_sentence_that_was_asked_for_at_two_degrees_is_not_about_something_else(tmp_path):
    run, out = run_of(tmp_path / "a", "Ann", texts=1, degrees=(1, 2)), tmp_path / "written.jsonl"
    file = run / "candidates.jsonl"
    first, second = map(json.loads, file.read_text().splitlines())
    other = first | {"text": "Another one.", "key": "x"}
    for said in (first["text"].upper(), first["text"]):  # the spelling of either degree may come first
        rows = [first | {"text": said}, other, second | {"text": first["text"].lower()}]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert draw_new(out, runs=(run,))[0] == {"written": 1}


def test_sentences_about_something_else_are_in_fewer_pairs(tmp_path):
    """Of the 44 pairs of a text (45 less that of the two of degree 1), 16 have one of degree 1."""
    runs = run_of(tmp_path / "a", "Ann", texts=300), run_of(tmp_path / "b", "Bob", texts=300)
    out = tmp_path / "written.jsonl"
    assert mine(MineConfig(out, runs=runs, n=300 * 44)) == {"written": 300 * 44}
    degrees = [[side[2] for side in words_of(row)] for row in draw_new(out, runs=runs, n=300 * 5)[1]]
    assert 0.05 < sum("1" in pair for pair in degrees) / 1500 < 0.2  # 0.36 if all were as likely
    assert ["1", "1"] not in degrees


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give --texts FILE, or run folders of llm-label"),
        ({"runs": ["a"], "texts": Path("texts.jsonl")}, "give --texts FILE, or run folders of llm-label"),
        ({"runs": ["a"], "limit": 3}, "--limit, --embeddings and --text-field are for --texts"),
        ({"runs": ["a"], "text_field": "body"}, "--text-field are for --texts"),
        ({"runs": ["a", "empty"]}, "candidates.jsonl holds no candidates; see rejected.jsonl beside it"),
        ({"runs": ["a/candidates.jsonl"]}, "candidates.jsonl holds no candidates.jsonl; give the folder"),
        ({"runs": ["a"], "n": 1000}, "--n 1,000 is more than the 80 pairs that there are"),
        ({"runs": ["none"]}, "none holds no candidates.jsonl; give the folder of an `angle-data llm-label"),
        ({"runs": ["one"]}, "no text has two sentences in these run folders .two of degree 1 do not count"),
        ({"runs": ["a", "a"]}, "a is given twice; name each once"),
        ({"runs": ["odd"]}, "odd/candidates.jsonl:1: text: Input should be a valid string"),
        ({"runs": ["a"], "embeddings": Path("a.npy")}, "--limit, --embeddings and --text-field are for --t"),
    ],
)
def test_runs_that_cannot_be_used_are_refused_in_one_line(tmp_path, given, message):
    run_of(tmp_path / "a", "Ann")
    run_of(tmp_path / "one", "One", degrees=(5,))
    run_of(tmp_path / "empty", "None", texts=0)
    odd = run_of(tmp_path / "odd", "Odd") / "candidates.jsonl"
    odd.write_text(odd.read_text().replace('"Odd says 5 of 0"', "5"))
    given = {**given, "runs": tuple(tmp_path / run for run in given.get("runs", ()))}
    with pytest.raises(InputError, match=message):
        mine(MineConfig(tmp_path / "written.jsonl", **given))
    assert not (tmp_path / "written.jsonl").exists()
