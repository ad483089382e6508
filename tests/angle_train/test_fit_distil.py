"""`distil_epochs`: a fresh backbone learns the tuned embeddings of the domain's texts, and keeps its own."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from cut_runs import CutOff, cut_off, interrupt
from letter_model import spelled
from train_runs import changed, evaluate_model, now, pair_set, run_of, tuned_weights, weights, write

from angle_data.errors import InputError
from angle_data.text import normalise, stable_hash
from angle_train import run as fit_module
from angle_train.data.keep import LEAST, KeptTexts, general_texts, load_to_stay
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.objective.batches import TargetCollator
from angle_train.objective.loss import TargetLoss
from angle_train.recipe import Recipe
from angle_train.report import provisional
from angle_train.run import fit, load_data
from angle_train.training import distillation
from angle_train.training.distillation import stages_of, targets, texts_to_embed, with_words_at_random

FAST = {"loss": "graded", "epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path, monkeypatch):
    """48 graded pairs, whose dev pairs are near copies, and 80 texts of other kinds that stay as they are."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    graded, dev = write(tmp_path / "graded.jsonl", rows[:48]), write(tmp_path / "dev.jsonl", now(rows[:48]))
    keep = [write(tmp_path / "kept.jsonl", [{"text": text} for text in general_texts()[:80]])]
    values = FAST | {"distil_epochs": 12}
    return run_of(tiny_model_dir, tmp_path / "out", graded, values, dev=[dev], keep=keep)


def moved(config, texts, model=None):
    """Mean cosine of the embeddings of texts with the backbone's."""
    before, after = (
        load_backbone(str(m), device="cpu").encode(texts) for m in (config.backbone, model or config.out)
    )
    return float(torch.nn.functional.cosine_similarity(torch.tensor(before), torch.tensor(after)).mean())


def killed(*_):
    """As where a process ends at once."""
    raise CutOff


def test_other_texts_stay_where_the_backbone_has_them_and_the_domains_move(config, rows, tmp_path):
    plain = replace(changed(config, distil_epochs=0), out=tmp_path / "plain")
    fit(plain)
    report = fit(config).report
    others, own = general_texts()[:80], [row["sentence1"] for row in rows[:48]]
    assert moved(config, others) > moved(plain, others) + 0.01
    assert moved(config, others) > moved(config, own) + 0.01
    assert report.details["distillation"] == {"own": 96, "others": 155}
    assert (
        report.planned_steps == 12 * 6
    )  # 96 texts twice, 80 others, 75 copies of these with other words; 64 a step
    assert {path.name for path in config.out.iterdir()} >= {"model.safetensors", "report.json"}
    assert not (config.out / "checkpoints").exists()
    assert "distillation" not in json.loads((plain.out / "report.json").read_text())["details"]


@pytest.mark.parametrize(
    "values",
    [
        {"average_with_backbone": 0.3, "frozen_layers": "embeddings"},
        {"precision": "bf16", "gradient_cache": True, "prompt": "about: "},
        {"lora_rank": 4, "lora_targets": "all", "pooling": "cls"},
        {"frozen_layers": 1, "matryoshka_dims": [16], "roles": True, "query_prompt": "find: "},
    ],
)
def test_a_fresh_load_gives_the_figures_of_the_report(values, config):
    config = changed(config, **values)
    report = fit(config).report
    data = load_data(config)[0]
    dev = data.with_roles().dev if values.get("roles") else data.dev
    saved = load_backbone(str(tuned_weights(config.out)), device="cpu")
    assert spearman(dev[0].score, evaluate_model(saved, dev[0])) == pytest.approx(report.dev_after, abs=1e-6)
    assert report.details["distillation"] == {"own": 96, "others": 155}


@pytest.mark.parametrize("step", [7, 18 + 7])
def test_a_run_cut_off_in_either_stage_ends_in_the_same_weights(step, config, tmp_path):
    whole = replace(config, out=tmp_path / "whole")
    fit(whole)
    with pytest.raises((CutOff, KeyboardInterrupt)), cut_off("on_step_end", step, interrupt):
        fit(config)
    fit(config)
    assert weights(config.out) == weights(whole.out)


def test_targets_of_other_texts_are_not_taken(config, tmp_path, monkeypatch):
    """As where one release wrote them, and the next lets other texts stay."""
    whole = replace(config, out=tmp_path / "whole")
    fit(whole)

    with monkeypatch.context() as patch:
        patch.setattr(distillation, "with_words_at_random", lambda texts: [])
        patch.setattr(distillation, "_rows", killed)  # what the second stage begins with
        with pytest.raises(CutOff):
            fit(config)
    assert list(config.out.glob("checkpoints/tuned/targets-*.npy"))
    fit(config)
    assert weights(config.out) == weights(whole.out)


def test_a_kill_while_targets_are_written_costs_no_step_of_the_first_stage(config, tmp_path, monkeypatch):
    whole = replace(config, out=tmp_path / "whole")
    fit(whole)

    with monkeypatch.context() as patch:
        patch.setattr(distillation, "targets", killed)
        with pytest.raises(CutOff):
            fit(config)
    assert not list(config.out.glob("checkpoints/tuned/targets-*.npy"))
    with (
        pytest.raises(CutOff),
        cut_off("on_step_begin", 1, killed),
    ):  # of the second stage: the first takes none
        fit(config)
    assert list(config.out.glob("checkpoints/tuned/targets-*.npy"))
    with pytest.raises(CutOff), cut_off("on_step_begin", 1, killed):
        fit(config)
    fit(config)
    assert weights(config.out) == weights(whole.out)


def test_parts_held_out_in_turn_are_distilled_too(config):
    report = fit(replace(config, dev=(), human=config.data, data=())).report
    assert report.details["distillation"] == {"own": 96, "others": 155}
    assert report.details["folds"]["progress"][-1] == 1
    assert report.planned_steps == 72


def test_without_other_texts_nothing_is_distilled_and_one_line_says_so(config, tmp_path, caplog):
    alone = replace(config, keep=())
    report = fit(alone).report
    plain = replace(changed(alone, distil_epochs=0), out=tmp_path / "plain")
    fit(plain)
    assert caplog.text.count("distil_epochs has no effect, since no texts of other kinds are kept") == 1
    assert weights(alone.out) == weights(plain.out)
    assert "distillation" not in report.details


def test_texts_of_the_pairs_do_not_stay_as_they_are(config, rows, tmp_path, caplog):
    own = [{"text": row[name].upper()} for row in rows[:48] for name in ("sentence1", "sentence2")]
    spec = write(tmp_path / "own.jsonl", own)
    with pytest.raises(InputError, match=r"0 distinct texts outside the pairs, dev, test and guards"):
        load_data(replace(config, keep=[spec]))
    assert f"--keep {spec}: 96 texts left out: in data that trains or measures (pairs, dev" in caplog.text


def test_more_general_texts_stay_in_a_distillation_than_are_kept_beside_pairs(caplog):
    caplog.set_level("INFO", "angle.fit")
    many = [f"own {number}" for number in range(9_000)]
    every = load_to_stay([], True, many, []).texts
    assert {*general_texts()} < {*every}
    assert len(every) == len(general_texts()) + 1_737
    measured = pair_set([(every[0], every[1].upper())])
    left = load_to_stay([], True, [*many, every[2].upper()], [measured])
    assert {*left.texts} == {*every[3:]}
    assert left.sha256() != load_to_stay([], True, many, []).sha256()
    assert "stay as the backbone embeds them: 4,697 of general text" in caplog.text
    assert load_to_stay([], False, many, []) is None


def test_of_few_pairs_fewer_general_texts_stay_and_all_of_keep(tmp_path, caplog):
    caplog.set_level("INFO", "angle.fit")
    mine = [f"Clause {number} of the lease names the tenant." for number in range(3_000)]
    spec = write(tmp_path / "mine.jsonl", [{"text": text} for text in mine])
    found = load_to_stay([spec], True, ["a note", "A note"], [])
    drawn = {*found.texts} - {*mine}
    assert len(drawn) == LEAST
    assert {*mine} < {*found.texts}
    assert list(found.texts) == sorted(found.texts, key=stable_hash)
    assert 0.5 < len(drawn & {*general_texts()}) / LEAST < 0.75  # of all files, not the first of them
    assert found.name == "mine + general text"
    assert f"them: 3,000 of --keep, {LEAST:,} of 4,697 of general text" in caplog.text
    own = [f"note {number}" for number in range(LEAST + 5)]
    more = load_to_stay([], True, own, []).texts
    assert len(more) == LEAST + 5
    assert {*found.texts} - {*mine} < {*more}


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Der Server antwortet seit dem Neustart nicht mehr.", True),
        ("Le disque de la base de données est plein.", True),
        ("服务器重启后无法访问", True),
        ("The server has not answered since it was restarted.", False),
        ("SQL error 1205: lock wait timeout exceeded; try restarting the transaction", False),
    ],
)
def test_where_nothing_of_ones_language_stays_a_line_says_so(text, foreign, caplog):
    load_to_stay([], True, [text], [])
    assert ("most words of your texts occur in none of those that stay" in caplog.text) == foreign


def test_where_one_chose_alone_what_stays_no_line_speaks_of_general_text(config, tmp_path, caplog):
    load_to_stay(config.keep, False, ["Der Server antwortet nicht."], [])
    assert "most words" not in caplog.text


def test_what_is_ahead_is_said_before_the_first_stage_and_each_has_its_name(config, monkeypatch, caplog):
    caplog.set_level("INFO", "angle.fit")
    train, labels = distillation.train, []

    def seen(*given, options, **others):
        labels.append((options.label, "18 steps, and a fresh backbone learns from it, 72" in caplog.text))
        return train(*given, options=options, **others)

    monkeypatch.setattr(distillation, "train", seen)
    fit(config)
    assert labels == [("stage 1 of 2", True), ("stage 2 of 2", True)]


def test_every_text_that_is_embedded_between_the_stages_is_counted(config, monkeypatch):
    seen = []

    class Counted(distillation.Progress):
        def __init__(self, label, total):
            super().__init__(label, total)
            seen.append([label, total, 0])

        def advance(self, count=1, note=""):
            seen[-1][2] += count

    monkeypatch.setattr(distillation, "Progress", Counted)
    fit(config)
    ((label, total, done),) = seen
    assert (label, total) == ("embedding", done)
    assert total > 200


def test_texts_of_the_pairs_are_no_others_and_have_their_roles():
    pairs = pair_set([("a", "b"), ("a", "c"), ("b", "a")])
    found = texts_to_embed(pairs, ["A ", "d", "e"])  # words of one letter stay in their copies
    assert (found.own, found.others) == ([("", "a"), ("", "b"), ("", "c")], [("", "d"), ("", "e")])
    roles = texts_to_embed(replace(pairs, roles=True), ["d"])
    query, document = "query", "document"
    assert {*roles.own} == {(query, "a"), (query, "b"), (document, "a"), (document, "b"), (document, "c")}
    assert roles.others == [(query, "d"), (document, "d")]
    assert texts_to_embed(pairs, ["a", "B"]) is None


def test_the_others_have_copies_with_words_of_each_other_in_them():
    texts = general_texts()[:200]
    copies = with_words_at_random(texts)
    assert with_words_at_random(texts[::-1]) == copies[::-1]
    words = {word for text in texts for word in re.findall("[a-zA-Z]{3,}", text)}
    old, new = ([re.findall("[a-zA-Z]+", text) for text in these] for these in (texts, copies))
    assert [*map(len, old)] == [*map(len, new)]
    both = [pair for pairs in zip(old, new, strict=True) for pair in zip(*pairs, strict=True)]
    assert {now for _, now in both if len(now) >= 3} <= words
    long = [before != now for before, now in both if len(before) >= 3]
    assert 0.27 < sum(long) / len(long) < 0.33
    assert all(before == now for before, now in both if len(before) < 3)
    assert re.sub("[a-zA-Z]{3,}", "", texts[0]) == re.sub("[a-zA-Z]{3,}", "", copies[0])
    umlauts = with_words_at_random(["Ein Über-Öltank läuft über die Straße."])[0]
    assert {*re.findall(r"\w+", umlauts)} <= {"Ein", "Über", "Öltank", "läuft", "über", "die", "Straße"}

    note = "मशीन दोबारा चालू करने के बाद सर्वर जवाब नहीं दे रहा है और डिस्क भरी"
    hindi = with_words_at_random([note])[0]
    assert hindi != note
    assert {*hindi.split()} <= {*note.split()}

    staying = [*texts, "It is."]
    pairs = pair_set([(f"own {number}", f"mine {number}") for number in range(150)])
    others = [text for _, text in texts_to_embed(pairs, staying).others]
    assert others == [*dict.fromkeys([*staying, *with_words_at_random(staying)])]


def test_nothing_holds_other_texts_in_place_while_the_pairs_are_learned(config, monkeypatch):
    kept = []

    def seen(*given, options, **others):
        kept.append(options.kept)
        return train(*given, options=options, **others)

    train = distillation.train
    monkeypatch.setattr(distillation, "train", seen)
    fit(config)
    assert kept == [None, None]
    kept.clear()
    fit(replace(changed(config, distil_epochs=0), out=config.out.with_name("kept")))
    assert [len(one.texts) for one in kept] == [80]


@pytest.mark.parametrize(
    ("own", "others", "times"), [(7, 3, (1, 2)), (3, 7, (2, 1)), (2, 9, (4, 1)), (3, 4, (1, 1))]
)
def test_whichever_texts_are_fewer_come_again_in_a_pass(own, others, times):
    texts = distillation.TextsToEmbed([("", "own")] * own, [("", "other")] * others)
    assert Counter(texts.places()) == Counter(
        [*range(own)] * times[0] + [*range(own, own + others)] * times[1]
    )


def test_held_out_pairs_do_not_stay_as_they_are(config, monkeypatch):
    """In a part's run they train in no pair, and they are no other kind of text."""
    stay = []

    def seen(pairs, staying):
        stay.append((len(pairs), {*map(normalise, staying)}))
        return texts_to_embed(pairs, staying)

    monkeypatch.setattr(distillation, "texts_to_embed", seen)
    spec = write(config.out.parent / "more.jsonl", [{"text": text} for text in general_texts()[:20]])
    given = replace(config, dev=(), human=config.data, data=(), keep=[spec, *config.data])
    fit(changed(given, epochs=0.2, distil_epochs=0.2))
    data = load_data(given)[0]
    known = {normalise(text) for text in (*data.human.text1, *data.human.text2)}
    assert min(count for count, _ in stay) < 48
    assert all(len(texts) == 20 and not texts & known for _, texts in stay)


def test_a_step_is_of_64_texts_however_scarce_memory_is(config):
    def last(**values):
        asked = changed(config, args={"gradient_accumulation_steps": 3}, **values).recipe
        pairs = pair_set([("a", "b"), ("c", "d")])
        found = stages_of(pairs, asked, KeptTexts("kept", ["e"]), None)
        return found.last.training.batch_size, found.last.arguments["gradient_accumulation_steps"]

    assert last(batch_size=64) == last(batch_size=16) == (64, 1)
    assert last(batch_size=2) == (8, 8)
    assert last(batch_size=12) == (32, 2)
    for batch_size in range(2, 20):
        at_once, times = last(batch_size=batch_size)
        assert at_once * times == 64
        assert at_once <= 4 * batch_size


def test_a_target_is_tuned_for_the_domain_and_the_backbones_elsewhere():
    """Two kinds of text a way apart, a third between them; tuning turns every embedding by a right angle."""
    draw = np.random.default_rng(0)
    before = 3 * np.repeat(np.eye(4)[:2], 200, axis=0) + draw.normal(0, 0.3, (400, 4))
    tuned = before[:, [2, 3, 0, 1]]
    unit = before / np.linalg.norm(before, axis=1, keepdims=True)
    found = targets(before, tuned[:200])
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert (found[:200] * unit[:200][:, [2, 3, 0, 1]]).sum(axis=1).min() > 0.99
    assert found[200:] == pytest.approx(unit[200:], abs=1e-6)
    between = np.vstack([[[1.0, 1.0, 0, 0]], before, [[1.0, 1.0, 0, 0]]])
    middle, *_, other = targets(between, between[:201, [2, 3, 0, 1]])
    assert middle[:2].sum() > 0.3
    assert middle[2:].sum() > 0.3
    assert other == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])  # as near to the domain, and it stays


def test_the_gate_opens_as_far_where_all_embeddings_of_a_backbone_are_alike():
    draw = np.random.default_rng(0)
    before = np.repeat(np.eye(4)[:2], 200, axis=0) + draw.normal(0, 0.1, (400, 4))
    before[:, 3] += 40  # every cosine is above 0.99
    tuned = before[:200, [3, 1, 2, 0]]
    unit = tuned / np.linalg.norm(tuned, axis=1, keepdims=True)
    assert (targets(before, tuned)[:200] * unit).sum(axis=1).mean() > 0.99


def test_a_gate_that_cannot_tell_is_warned_of(caplog):
    same = np.random.default_rng(0).normal(size=(400, 4))
    targets(same, same[:200])
    assert "the texts that are to stay are much like yours" in caplog.text
    for far in (1.5, 9.0):  # open by 0.80 and 0.20, and by 1 and 0
        caplog.clear()
        apart = same + np.repeat([[far, 0, 0, 0], [0, far, 0, 0]], 200, axis=0)
        targets(apart, apart[:200])
        assert "much like yours" not in caplog.text


def test_targets_of_many_texts_are_those_of_few(monkeypatch):
    """Mixed in blocks, by a gate that learned from some of the texts of either kind."""
    draw = np.random.default_rng(0)
    before = np.repeat(np.eye(4)[:2], [500, 300], axis=0) + draw.normal(0, 0.3, (800, 4))
    whole = targets(before, before[:500, ::-1])
    monkeypatch.setattr(distillation, "_BLOCK", 64)
    assert targets(before, before[:500, ::-1]) == pytest.approx(whole, abs=1e-6)
    monkeypatch.setattr(distillation, "_SEEN", 250)
    some = targets(before, before[:500, ::-1])
    assert (some * whole).sum(axis=1).min() > 0.9
    assert (some * whole).sum(axis=1)[:500].min() < 0.99999


@pytest.mark.parametrize("dims", [[], [2]])
def test_loss_is_the_distance_of_each_text_from_its_own_target(dims):
    rows = [{"text": text, "role": "", "place": place} for text, place in (("ccc", 2), ("a", 0), ("bb", 1))]
    wanted = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 1.0]], dtype=np.float32)
    batch = TargetCollator(spelled, Recipe(), targets=wanted)(rows)
    assert batch["label"]["target"].tolist() == wanted.tolist()  # by length
    loss = TargetLoss(torch.nn.Identity(), Recipe().with_overrides({"matryoshka_dims": dims}).objective)
    embeddings = torch.tensor([[2.0, 2.0, 0.0], [-2.0, -1.0, 0.0], [0.0, 3.0, 0.0]])
    whole, first_two = (0 + 2 + 1 - 0.5**0.5) / 3, (0 + 2 + 0) / 3
    expected = whole + first_two * bool(dims)
    assert loss._terms(embeddings, batch["label"])["target"].item() == pytest.approx(expected)


def test_the_dev_pairs_tell_of_both_stages_in_one_count_of_steps(config, monkeypatch):
    told = []
    monkeypatch.setattr(provisional, "write_provisional_page", lambda *given: told.append(given[-1]))
    fit(config)
    assert told[-1] == "step 90 of 90"
    assert "step 18 of 90" in told  # the end of the first
    assert len({*told}) == 6 + 12 + ("step 1 of 90" in told)
