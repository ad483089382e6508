"""Models on tasks and on own pairs: what is measured, what fails, and what is measured all the same."""

import gc
import weakref

import pytest
from train_runs import dataset

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation import similarity
from angle_train.evaluation.sts import GradedTask
from angle_train.evaluation.suite import evaluate, own_pairs, short_names
from angle_train.evaluation.task import Source, load_task
from angle_train.model.load import load_backbone


@pytest.fixture
def data_dir(tmp_path):
    def pairs(n):
        return [
            {"text1": f"the node {i} failed", "text2": "x " * (i % 7) + f"node {i}", "score": i % 6}
            for i in range(n)
        ]

    write_jsonl(tmp_path / "stsb" / "test.jsonl", pairs(40))
    write_jsonl(tmp_path / "sick-r" / "test.jsonl", pairs(30))
    return tmp_path


@pytest.fixture
def both(tiny_model_dir):
    """Two models of equal weights, called `model` and `checkpoint`."""
    return [str(tiny_model_dir), str(tiny_model_dir.parent / "checkpoint")]


def on_tasks(models, names, data_dir, baseline=None):
    source = data_dir if isinstance(data_dir, Source) else Source(data_dir)
    return evaluate(models, {name: load_task(name) for name in names}, source, baseline, device="cpu")


def test_no_data_at_all_is_an_error_before_any_model_is_loaded(tmp_path):
    with pytest.raises(InputError, match=r"no stsb/test\.jsonl\.gz"):
        on_tasks(["nobody/nothing"], ["stsb"], tmp_path)
    with pytest.raises(InputError, match=r"none of the tasks can be measured"):
        on_tasks(["nobody/nothing"], ["stsb", "sts12"], tmp_path)


def test_models_of_equal_last_parts_are_told_apart():
    models = ["x/seed-1", "m/a/seed-1", "/m/b/seed-1", "m/b/seed-2", "owner/model"]
    names = ["x/seed-1", "a/seed-1", "b/seed-1", "seed-2", "model"]
    assert short_names(models) == dict(zip(models, names, strict=True))
    assert short_names(["m", "x/m", "m"]) == {"m": "m", "x/m": "x/m"}


def test_a_folder_called_model_is_called_by_its_card(tmp_path):
    for name, heading in (
        ("a", "# all-small"),
        ("b", "# all-small-tuned"),
        ("c", "# all-small-tuned"),
        ("d", ""),
    ):
        folder = tmp_path / name / "model"
        folder.mkdir(parents=True)
        (folder / "README.md").write_text(f"---\n---\n{heading}\n", encoding="utf-8")
    a, b, c, d = (str(tmp_path / name / "model") for name in "abcd")
    assert short_names([a, b]) == {a: "all-small", b: "all-small-tuned"}
    assert short_names([a, b, c]) == {a: "a/model", b: "b/model", c: "c/model"}
    assert short_names([a, d]) == {a: "a/model", d: "d/model"}
    assert short_names([a, "owner/other"]) == {a: "all-small", "owner/other": "other"}
    assert short_names(["owner/all-small", a]) == {"owner/all-small": "all-small", a: "model"}
    assert short_names([d]) == {d: "model"}
    link = tmp_path / "best"
    link.symlink_to(a)
    assert short_names([str(link)]) == {str(link): "best"}


def test_models_are_held_one_at_a_time(both, data_dir, monkeypatch):
    loaded = []

    def load(*given, **options):
        gc.collect()
        assert not [model for model in loaded if model() is not None]
        model = load_backbone(*given, **options)
        loaded.append(weakref.ref(model))
        return model

    monkeypatch.setattr(similarity, "load_backbone", load)
    assert on_tasks(both, ["sick-r"], data_dir).results
    assert len(loaded) == 2


@pytest.fixture
def small_fails(monkeypatch):
    """The task of 30 pairs cannot be measured the n-th time, for each n that it is given."""
    measure, numbers, calls = GradedTask.measure, [], []

    def with_mistake(task, data, encode):
        if len(data) == 30:
            calls.append(data)
            if len(calls) - 1 in numbers:
                raise InputError("a mistake of the user's")
        return measure(task, data, encode)

    monkeypatch.setattr(GradedTask, "measure", with_mistake)
    return numbers.append


@pytest.mark.parametrize("number", [0, 1])
def test_a_task_that_fails_under_one_model_does_not_lose_the_others(
    data_dir, both, small_fails, caplog, number
):
    small_fails(number)
    found = on_tasks(both, ["sick-r", "stsb"], data_dir)
    assert [(result.pairs, result.model) for result in found.results] == [
        ("stsb", "model"),
        ("stsb", "checkpoint"),
    ]
    assert found.failed == {"sick-r": "a mistake of the user's"}
    assert caplog.text.count("a mistake of the user's") == 1  # no other model is tried on it
    assert [view.pairs.name for view in found.views] == ["stsb"]


def some(count):
    """So many rows of pairs."""
    return [{"text1": f"a{i}", "text2": f"b{i % 3}", "score": i / 8} for i in range(count)]


@pytest.mark.parametrize(("count", "told"), [(19, True), (20, False)])
def test_very_few_pairs_are_told(tmp_path, caplog, count, told):
    own_pairs([dataset(tmp_path, test=some(count))])
    assert (f"has only {count} pairs: figures and intervals are unreliable" in caplog.text) == told


@pytest.mark.parametrize(("texts", "told"), [(4, True), (5, False)])
def test_pairs_of_a_few_texts_are_told(tmp_path, caplog, texts, told):
    rows = [{"text1": f"a{i}", "text2": f"b{i % texts}", "score": i / 8} for i in range(30)]
    own_pairs([dataset(tmp_path, test=rows)])
    said = "30 pairs, 4 of them without a common text: intervals hold for these texts alone"
    assert (said in caplog.text) == told
    assert ("without a common text" in caplog.text) == told


def test_pairs_to_train_on_are_not_measured_on_unasked(tmp_path):
    def count(**asked):
        (task,) = own_pairs([source], **asked).values()
        return len(task.pairs)

    source = dataset(tmp_path, train=some(9))
    assert count() == 9  # there is nothing else
    dataset(tmp_path, validation=some(7))
    with pytest.raises(InputError, match=r"has the splits train, validation; choose one with --split"):
        count()
    assert count(split="dev") == 7
    dataset(tmp_path, test=some(5))
    assert count() == 5
    assert count(split="train") == 9
