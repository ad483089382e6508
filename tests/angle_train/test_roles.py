"""Queries and documents: read as such in training, in figures, by `encode --as`, and by the saved model."""

import json

import numpy as np
import pytest
from letter_model import collator, spelled
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from train_runs import now, run_of, turned, write

from angle_data.errors import InputError
from angle_train import evaluate, fit, train
from angle_train.inputs import load_data
from angle_train.model.length import choose_length_in_roles
from angle_train.model.roles import RolePrompts, set_role_prompts
from angle_train.recipe import Recipe, find_recipe

PROMPTS = {"query_prompt": "query: ", "document_prompt": "passage: "}
FAST = {"loss": "graded", "epochs": 2, "batch_size": 16, "learning_rate": 3e-3, "evals_per_epoch": 1}
FAST |= {"device": "cpu"}


def figure(model, rows, query="encode_query", document="encode_document"):
    """Spearman of the cosines that Sentence Transformers gives."""
    first = getattr(model, query)([row["sentence1"] for row in rows], normalize_embeddings=True)
    second = getattr(model, document)([row["sentence2"] for row in rows], normalize_embeddings=True)
    return spearmanr((first.astype(float) * second).sum(axis=1), [row["score"] for row in rows]).statistic


def score_of(results, model, role="test"):
    return next(r.score.value for r in results if (r.model.split(",")[0], r.role) == (model, role))


@pytest.fixture
def prompted(tiny_model, tmp_path):
    """A model that came with prompts, as e5 does."""
    tiny_model.prompts |= {"query": "query: ", "passage": "passage: "}
    tiny_model.save_pretrained(str(tmp_path / "prompted"), create_model_card=False)
    return tmp_path / "prompted"


def letters(batch):
    names = sorted(name for name in batch if name.endswith("_input_ids"))
    return [["".join(chr(c) for c in row if c) for row in batch[name].tolist()] for name in names]


def in_roles(**options):
    made = collator(lambda texts, prompt: spelled([prompt + text for text in texts]), **options)
    made.roles = {"query": {"prompt": "q"}, "document": {"prompt": "d"}}
    return made


def test_a_text_that_is_query_and_document_is_encoded_as_both_with_both_prompts():
    rows = [{"text1": "a", "text2": "bb", "score": 1.0}, {"text1": "a", "text2": "a", "score": 0.0}]
    batch = in_roles()(rows)
    assert letters(batch) == [["da", "dbb"], ["qa"]]  # no chunk of both roles
    assert batch["label"]["first"].tolist() == [2, 2]
    assert batch["label"]["second"].tolist() == [1, 0]
    group = batch["label"]["group"].tolist()
    assert group[0] == group[2]  # the same text, so not its own negative


@pytest.mark.parametrize("seed", range(4))
def test_a_swap_leaves_every_text_its_role(seed):
    rows = [{"text1": f"{n}", "text2": f"{n}x", "score": n / 9} for n in range(9)]
    batch = in_roles(swap=True, seed=seed)(rows)
    texts = [text for chunk in letters(batch) for text in chunk]
    pairs = zip(batch["label"]["first"].tolist(), batch["label"]["second"].tolist(), strict=True)
    assert {frozenset((texts[a], texts[b])) for a, b in pairs} == {
        frozenset((f"q{row['text1']}", f"d{row['text2']}")) for row in rows
    }
    assert len({texts[a][0] for a in batch["label"]["first"].tolist()}) == 2  # some were exchanged


def test_two_processes_share_the_texts_of_both_roles():
    rows = [{"text1": "a" * n, "text2": "b" * n, "score": n / 9} for n in range(1, 8)]
    whole = {text for chunk in letters(in_roles()(rows)) for text in chunk}
    shares = [letters(in_roles(process=process, processes=2, chunk_size=3)(rows)) for process in (0, 1)]
    assert len(shares[0]) == len(shares[1])
    assert {text for share in shares for chunk in share for text in chunk} == whole
    assert all(len({text[0] for text in chunk}) == 1 for share in shares for chunk in share)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, tiny_model_dir, rows):
    out = tmp_path_factory.mktemp("roles") / "model"
    test = turned(rows)
    return fit(now(test), dev=now(test), test=test, backbone=tiny_model_dir, out=out, **FAST, **PROMPTS), test


def test_backbone_and_tuned_model_are_measured_with_the_same_prompts(tuned, tiny_model_dir):
    result, test = tuned
    assert result.report.kept == "tuned"
    saved = SentenceTransformer(str(result.path), device="cpu")
    assert (saved.prompts["query"], saved.prompts["document"]) == ("query: ", "passage: ")
    assert score_of(result.report.results, "tuned") == pytest.approx(figure(saved, test), abs=1e-5)
    backbone = SentenceTransformer(str(tiny_model_dir), device="cpu")
    backbone.prompts |= {"query": "query: ", "document": "passage: "}
    assert score_of(result.report.results, "backbone") == pytest.approx(figure(backbone, test), abs=1e-5)
    plain = figure(backbone, test, "encode", "encode")
    assert abs(plain - figure(backbone, test)) > 1e-3  # the prompts do something


def test_eval_reads_pairs_by_role_where_it_is_asked_to(tuned):
    result, test = tuned
    saved = SentenceTransformer(str(result.path), device="cpu")
    plain = evaluate(result.path, pairs=test, device="cpu").evaluation.results
    asked = evaluate(result.path, pairs=test, roles=True, device="cpu").evaluation.results
    assert plain[-1].score.value == pytest.approx(figure(saved, test, "encode", "encode"), abs=1e-5)
    assert asked[-1].score.value == pytest.approx(figure(saved, test), abs=1e-5)


def test_eval_gives_all_models_the_prompts(tiny_model_dir, rows, program, tmp_path):
    file = write(tmp_path / "pairs.jsonl", rows)
    given = ("eval", "--model", tiny_model_dir, "--pairs", file, "--device", "cpu", "--json")
    code, out, _ = program(*given, "--query-prompt", "query: ", "--document-prompt", "passage: ")
    model = SentenceTransformer(str(tiny_model_dir), device="cpu")
    model.prompts |= {"query": "query: ", "document": "passage: "}
    found = json.loads(out)["results"][-1]["score"]["value"]
    assert (code, found) == (0, pytest.approx(figure(model, rows), abs=1e-5))


def test_a_backbone_with_prompts_uses_them_only_where_roles_are_asked_for(prompted, rows, tmp_path, caplog):
    values = FAST | {"epochs": 1, "learning_rate": 1e-9}
    with caplog.at_level("INFO"):
        plain = fit(now(rows), dev=rows, backbone=prompted, out=tmp_path / "plain", **values)
    assert "has prompts for queries and documents; the pairs are read without them" in caplog.text
    asked = fit(now(rows), dev=rows, backbone=prompted, out=tmp_path / "roles", roles=True, **values)
    model = SentenceTransformer(str(prompted), device="cpu")
    assert score_of(plain.report.results, "backbone", "dev") == pytest.approx(
        figure(model, rows, "encode", "encode"), abs=1e-5
    )
    model.prompts["document"] = "passage: "  # where encode_document looks first
    assert score_of(asked.report.results, "backbone", "dev") == pytest.approx(figure(model, rows), abs=1e-5)
    saved = SentenceTransformer(str(tmp_path / "roles"), device="cpu")  # the backbone, kept
    assert saved.prompts["document"] == "passage: "


def test_train_reads_roles_as_fit_does(prompted, rows):
    found = train(str(prompted), rows, dev=rows, roles=True, **FAST)
    assert found.best == pytest.approx(figure(found.model, rows), abs=1e-5)


def test_encode_embeds_texts_in_a_role(prompted, rows, program, tmp_path):
    (tmp_path / "x.txt").write_text("\n".join(row["sentence1"] for row in rows))
    model = SentenceTransformer(str(prompted), device="cpu")
    model.prompts["document"] = "passage: "
    texts = [row["sentence1"] for row in rows]
    for role, encode in (("query", model.encode_query), ("document", model.encode_document)):
        out = tmp_path / f"{role}.npy"
        given = ("encode", "--model", prompted, "--texts", tmp_path / "x.txt", "--out", out)
        assert program(*given, "--as", role)[0] == 0
        assert np.load(out) == pytest.approx(encode(texts), abs=1e-6)
    assert not np.allclose(np.load(tmp_path / "query.npy"), np.load(tmp_path / "document.npy"), atol=1e-4)
    code, _, err = program(*given, "--as", "passage")
    assert (code, "'passage' is not one of 'query', 'document'" in err) == (2, True)


def test_the_length_counts_the_prompt_of_the_role(tiny_model):
    set_role_prompts(tiny_model, RolePrompts(query="a b c "))
    assert choose_length_in_roles(tiny_model, ["x"], ["y"]).longest == 6
    assert choose_length_in_roles(tiny_model, [], ["y"]).longest == 3


def test_a_prompt_of_a_role_stands_before_the_text(tiny_model):
    with pytest.raises(InputError, match=r"the query prompt .* can only stand before the text"):
        set_role_prompts(tiny_model, RolePrompts(query="find {text} now"))
    set_role_prompts(tiny_model, RolePrompts(query="find {text}"))
    assert tiny_model.prompts["query"] == "find "


def test_a_model_with_a_chat_template_takes_no_prompt_of_a_role(tiny_model_dir, rows, tmp_path):
    values = FAST | PROMPTS | {"prompt": "say {text} in a word"}
    with pytest.raises(InputError, match="chat template, which takes no query prompt"):
        fit(rows, dev=rows, backbone=tiny_model_dir, out=tmp_path / "out", **values)


def test_a_teacher_scores_no_roles(prompted, rows, tmp_path):
    with pytest.raises(InputError, match="--teacher scores pairs without roles"):
        fit(now(rows), dev=rows, backbone=prompted, out=tmp_path / "o", teacher=prompted, roles=True, **FAST)


def test_the_recipe_for_search_reads_queries_and_documents(tiny_model_dir, tmp_path, rows):
    assert Recipe.from_toml(find_recipe("search")).training.roles
    data, _ = load_data(
        run_of(tiny_model_dir, tmp_path / "out", write(tmp_path / "pairs.jsonl", rows), {"loss": "graded"})
    )
    assert not data.train.roles  # pairs as such have none
    every = data.with_roles()
    assert all(pairs.roles for pairs in (every.train, *every.dev))
    assert every.train.take([0, 1], "two").roles
