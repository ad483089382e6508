"""The functions of `import angle_train`, as a notebook calls them: rows in memory, a loop running."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from datasets import Dataset
from report_examples import Tags
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from train_runs import now

from angle_data.errors import InputError
from angle_train import evaluate, fit, train
from angle_train.given import kept_in
from angle_train.keywords import rename_merge_back

FAST = {"loss": "papers", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


def in_a_loop(function):
    """What a function returns in a cell: called while a loop runs in this thread."""

    async def cell():
        return function()

    return asyncio.run(cell())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, tiny_model_dir, rows):
    """A run on rows in memory: a data set to train on, lists for the rest."""
    out = tmp_path_factory.mktemp("api") / "model"

    def call(**more):
        data, options = Dataset.from_list(rows[:60]), {"device": "cpu", **FAST, **more}
        graded = {"dev": rows[:60], "test": now(rows[:60])}
        return fit(data, backbone=tiny_model_dir, out=str(out), **graded, **options)

    return call, in_a_loop(call)


def test_rows_in_memory_become_a_model_that_encodes(fitted, rows):
    _, result = fitted
    assert (result.path / "report.html").is_file()
    assert not result.already_finished
    assert {(note.role, note.name, note.pairs) for note in result.report.data} == {
        ("train", "train", 60),
        ("dev", "dev", 60),
        ("test", "test", 60),
    }
    assert result.report.recipe["training"]["epochs"] == 2
    assert result.model is result.model
    assert result.model.encode(["One node left."]).shape == (1, 32)


def test_figures_are_those_of_the_terminal(fitted):
    _, result = fitted
    [row] = [row for row in result.figures if (row["role"], row["model"]) == ("test", "tuned")]
    shown = next(found for found in result.report.results if (found.role, found.model) == ("test", "tuned"))
    assert row["score"] == pytest.approx(100 * shown.score.value)
    assert row["difference"] == pytest.approx(100 * shown.difference.delta)
    assert f"{row['score']:.1f}" in repr(result)
    assert result.report.verdict.headline in repr(result)


def test_a_result_shows_itself_without_scripts(fitted):
    _, result = fitted
    page = Tags(result._repr_html_())
    assert {"h3", "table", "td"} <= {tag for tag, _ in page.seen} <= {
        "div", "h3", "p", "small", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert next(text for text in page.texts if text.strip()) == result.report.verdict.headline
    assert len(page.all("tr")) == 1 + len(result.figures)
    assert not [name for _, attributes in page.seen for name in attributes if name.startswith("on")]


def test_models_are_measured_on_rows_in_memory(fitted, tiny_model_dir, rows, tmp_path):
    _, result = fitted
    page = tmp_path / "page.html"
    found = in_a_loop(lambda: evaluate(result, pairs=rows[:30], baseline=tiny_model_dir, report=str(page)))
    assert found.figures[0]["model"] == "word overlap"
    assert {row["count"] for row in found.figures} == {30}
    assert found.figures[-1]["difference"] is not None
    assert found.path == page
    assert page.is_file()
    assert "<table>" in found._repr_html_()
    assert f"{found.figures[-1]['score']:.1f}" in repr(found)
    assert found.failed == {}


def test_tuples_are_measured_as_the_rows_they_stand_for(tiny_model_dir, rows):
    tuples = [(row["sentence1"], row["sentence2"], row["score"]) for row in rows[:30]]
    assert evaluate(tiny_model_dir, pairs=tuples).figures == evaluate(tiny_model_dir, pairs=rows[:30]).figures
    with pytest.raises(InputError, match="pairs: item 31 is"):
        evaluate(tiny_model_dir, pairs=[*tuples, ("alone",)])


def test_texts_of_the_user_are_escaped(tiny_model_dir, rows, tmp_path):
    path = tmp_path / "a<script>b.jsonl"
    path.write_text("\n".join(map(json.dumps, rows[:30])))
    page = evaluate(tiny_model_dir, pairs=path)._repr_html_()
    assert "a&lt;script&gt;b" in page
    assert not Tags(page).all("script")


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"epoch": 1}, TypeError, "no option 'epoch'; did you mean epochs"),
        ({"batchsize": 1}, TypeError, "did you mean batch_size"),
        ({"recipe": "papier"}, InputError, "no recipe is called 'papier'"),
        ({"recipe": {"epochs": 3}}, InputError, "recipe: got a dict; give a built-in name"),
        (
            {"dev": [("a", "b", 1.0), ("a",)]},
            InputError,
            r"dev: item 2 is \('a',\); give \(text, text, score",
        ),
        ({"dev": "no-such.csv"}, InputError, "no-such.csv does not exist"),
        ({"dev": [{"text1": "a"}, {"text1": "b"}]}, InputError, "^dev: no text columns"),
        ({"data": [{"text1": "a", "text2": "b", "score": "x"}]}, InputError, "^data, row 1: score must be"),
        ({"dev": 3}, InputError, "dev: got 3"),
        ({"data": None}, InputError, "nothing to train on"),
        ({"device": "abacus"}, InputError, "--device abacus"),
        ({"backbone": "./nowhere"}, InputError, "nowhere does not exist"),
        (
            {"backbone": SimpleNamespace(model="x")},
            InputError,
            "SimpleNamespace is neither a path nor a name",
        ),
    ],
)
def test_what_cannot_be_fitted_leaves_nothing_but_rows(options, kind, said, tiny_model_dir, rows, tmp_path):
    options = {"data": rows, "backbone": tiny_model_dir, "device": "cpu", **options}
    with pytest.raises(kind, match=said):
        fit(out=tmp_path / "out", **options)
    assert {path.name for path in tmp_path.glob("out/*")} <= {".angle"}


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"splits": "dev"}, TypeError, "did you mean split"),
        ({"task": "stsb"}, InputError, "either --pairs FILE, or --search FOLDER, or --task"),
    ],
)
def test_what_cannot_be_measured_is_named(options, kind, said, tiny_model_dir, rows):
    with pytest.raises(kind, match=said):
        evaluate(tiny_model_dir, pairs=rows[:30], **options)


@pytest.mark.parametrize("function", [evaluate, train])
def test_a_row_that_cannot_be_used_is_named_as_it_was_given(function, tiny_model_dir, rows):
    with pytest.raises(InputError, match=r"^pairs, row 31: score must be a number"):
        function(tiny_model_dir, pairs=[*rows[:30], {"text1": "a", "text2": "b", "score": "x"}])


def test_an_option_that_was_given_rows_is_named_once_and_a_suggested_command_keeps_its_file(
    tiny_model_dir, rows, tmp_path
):
    given = {"backbone": tiny_model_dir, "out": tmp_path / "out", "device": "cpu"}
    with pytest.raises(InputError, match=r"^guard: all its pairs train or choose"):
        fit(rows[:60], guard=rows[:60], **given)
    with pytest.raises(InputError, match=r"^judged: none of its 30 pairs is among .* grade .*") as caught:
        evaluate(tiny_model_dir, pairs=rows[:30], judged=[row | {"model": "m"} for row in rows[30:60]])
    assert "judged.jsonl --out" in str(caught.value)


def test_lists_without_pairs_are_refused_by_name(tiny_model_dir, rows, tmp_path):
    for lists in ({"pairs": []}, {"pairs": rows[:30], "judged": []}):
        with pytest.raises(
            InputError, match=f"{[*lists][-1]}: got an empty list; give pairs or texts, or leave"
        ):
            evaluate(tiny_model_dir, **lists)
    given = {"backbone": tiny_model_dir, "out": tmp_path / "out"}
    for name in ("dev", "test", "human", "guard", "keep", "data"):
        with pytest.raises(InputError, match=f"{name}: got an empty list; give pairs or texts, or leave"):
            fit(**{"data": rows, **given, name: []})


def test_a_share_of_the_backbone_that_is_given_twice_is_refused(tiny_model_dir, rows, tmp_path):
    given = {"backbone": tiny_model_dir, "out": tmp_path / "out", "average_with_backbone": 0.2}
    with pytest.raises(InputError, match="given twice: leave out merge_back or average_with_backbone"):
        fit(rows, merge_back=0.1, **given)
    options = {"merge_back": 0.1, "average_with_backbone": None}
    rename_merge_back(options)
    assert options == {"average_with_backbone": 0.1}
    rename_merge_back(options)
    assert options == {"average_with_backbone": 0.1}


def test_a_model_in_memory_is_measured_as_its_folder_is(tiny_model, tiny_model_dir, rows):
    found = evaluate([tiny_model, tiny_model_dir], pairs=rows[:30], baseline=tiny_model_dir, device="cpu")
    figures = [row["score"] for row in found.figures if row["model"] != "word overlap"]
    assert len(figures) == 2
    assert figures[0] == pytest.approx(figures[1])
    assert found.figures[-1]["model"].startswith("in-memory") or "in-memory" in repr(found)
    # A folder that is gone afterwards is no place of a model.
    assert list(found.evaluation.models.values()) == [str(tiny_model_dir)]
    with pytest.raises(InputError, match="int is neither a path nor a name"):
        evaluate(7, pairs=rows)


def test_what_train_returned_is_measured_and_fitted_as_its_model_is(tiny_model, rows, tmp_path):
    trained = train(tiny_model, rows, epochs=1, max_seq_length=16, seed=1, device="cpu")
    assert evaluate(trained, pairs=rows[:30]).figures == evaluate(trained.model, pairs=rows[:30]).figures
    given = {"out": tmp_path / "out", "dev": rows[:60], "device": "cpu", **FAST}
    fit(rows[:60], backbone=trained, **given)
    assert fit(rows[:60], backbone=trained.model, **given).already_finished


def test_a_model_in_memory_is_the_same_once_it_has_encoded(tiny_model, tmp_path):
    """Encoding sets truncation and padding of its tokenizer, and every call sets them again."""
    first = kept_in(tmp_path / "first", tiny_model)
    tiny_model.encode(["a text", "and a longer one"])
    again = kept_in(tmp_path / "again", tiny_model)
    assert Path(first).name == Path(again).name
    texts = ["a text", "a text that is longer"]
    opened = SentenceTransformer(first, device="cpu")
    np.testing.assert_allclose(opened.encode(texts), tiny_model.encode(texts), atol=1e-6)


def test_a_static_model_in_memory_keeps_the_truncation_that_it_reads_by(tmp_path):
    vocabulary = {"[UNK]": 0, "[PAD]": 1, "a": 2, "text": 3, "longer": 4}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_truncation(2)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=4)], device="cpu")
    kept = SentenceTransformer(kept_in(tmp_path, model), device="cpu")
    np.testing.assert_allclose(kept.encode(["a text longer"]), model.encode(["a text longer"]), atol=1e-6)


def test_a_model_in_memory_is_fitted_and_stays_as_it_was(tiny_model, tiny_model_dir, rows, tmp_path):
    """With tuples in a `DatasetDict`'s place: the same run as from files, and the same call reopens it."""
    before = {name: value.clone() for name, value in tiny_model.state_dict().items()}
    pairs = [(row["sentence1"], row["sentence2"], row["score"]) for row in rows]
    splits = {"train": pairs[:60], "validation": pairs[:60], "test": pairs[60:]}
    found = fit(splits, backbone=tiny_model, out=tmp_path / "object", device="cpu", **FAST)
    assert all(value.equal(before[name]) for name, value in tiny_model.state_dict().items())
    given = {"dev": rows[:60], "test": rows[60:], "device": "cpu", **FAST}
    by_path = fit(rows[:60], backbone=tiny_model_dir, out=tmp_path / "path", **given)
    assert found.figures == by_path.figures
    again = fit(splits, backbone=tiny_model, out=tmp_path / "object", device="cpu", **FAST)
    assert again.already_finished
    assert len(list((tmp_path / "object" / ".angle").glob("in-memory*"))) == 1


class FakeHub:
    """What is asked of the hub."""

    made, uploaded, error = (), (), None

    def whoami(self):
        if FakeHub.error is not None:
            raise FakeHub.error
        return {"name": "me", "orgs": [{"name": "us"}]}

    def create_repo(self, name, **options):
        FakeHub.made = (name, options)

    def upload_folder(self, *, repo_id, folder_path, ignore_patterns):
        from huggingface_hub.utils import filter_repo_objects

        every = [str(path.relative_to(folder_path)) for path in folder_path.rglob("*") if path.is_file()]
        FakeHub.uploaded = {repo_id: {*filter_repo_objects(every, ignore_patterns=ignore_patterns)}}


@pytest.fixture
def fake_hub(monkeypatch):
    import angle_train.report.hub

    monkeypatch.setattr(angle_train.report.hub, "HfApi", FakeHub)
    FakeHub.made, FakeHub.uploaded, FakeHub.error = (), {}, None
    return FakeHub


def test_a_tuned_model_goes_to_the_hub_without_what_quotes_pairs(fitted, fake_hub, tiny_model_dir, rows):
    call, result = fitted
    assert result.report.kept == "tuned"
    again = call(push_to_hub="me/model")
    assert again.already_finished
    assert fake_hub.made == ("me/model", {"private": True, "exist_ok": True})
    uploaded = fake_hub.uploaded["me/model"]
    assert {"model.safetensors", "modules.json", "README.md", "1_Pooling/config.json"} <= uploaded
    here = {str(path.relative_to(result.path)) for path in result.path.rglob("*") if path.is_file()}
    kept_here = {name for name in here - uploaded if not name.startswith(".angle/")}
    assert kept_here == {"report.html", "report.json"}
    texts = [row["sentence1"] for row in rows]
    public = "".join((result.path / name).read_text() for name in uploaded if name.endswith((".md", ".toml")))
    assert not [text for text in texts if text in public]


def test_a_backbone_that_was_kept_is_not_pushed(fake_hub, caplog):
    from angle_train.report.hub import push

    push("folder", "me/model", "backbone")
    assert fake_hub.uploaded == {}
    assert fake_hub.made == ()  # nor an empty repository left behind
    assert "the run kept the backbone: nothing is pushed to me/model" in caplog.text


def test_a_hub_that_refuses_is_said_before_anything_is_trained(fake_hub, tiny_model_dir, rows, tmp_path):
    fake_hub.error = OSError("401 Client Error:\n no token")
    with pytest.raises(InputError, match=r"--push-to-hub me/model: 401 Client Error: no token; log in"):
        fit(rows, backbone=tiny_model_dir, out=tmp_path / "out", push_to_hub="me/model")
    assert not (tmp_path / "out" / "report.json").exists()
    assert fake_hub.made == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model", "give NAME/MODEL"),
        ("me/a model", "give NAME/MODEL"),
        ("them/model", "you are logged in as me, who may write as me, us"),
    ],
)
def test_a_repository_that_one_cannot_write_to_is_refused_before_anything_is_trained(fake_hub, name, said):
    from angle_train.report.hub import check_repository

    with pytest.raises(InputError, match=said):
        check_repository(name)
    check_repository("us/model")
    assert fake_hub.made == ()


def test_the_names_stay_functions_whatever_is_imported():
    import angle_train.evaluation.suite
    import angle_train.run

    for name in ("fit", "evaluate", "train"):
        assert getattr(angle_train, name) is getattr(angle_train.api, name)
    assert {"fit", "evaluate", "train", "AngleLoss", "Fitted"} <= set(dir(angle_train))
