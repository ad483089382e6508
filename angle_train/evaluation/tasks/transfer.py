"""Classification with frozen embeddings: SentEval's transfer tasks, and inference on joined sentences.

Logistic regression by SentEval's protocols. MR, CR, SUBJ and MPQA: nested cross-validation in ten folds.
TREC and MRPC: C (inverse strength of the L2 penalty) chosen in ten folds of train. SST2 and inference: C
chosen on the validation split. Texts are put into SentEval's order (by number of words, then label) first,
since its folds depend on it; texts alike in both stay in the order of the file.

Folds, grids of C and the choice of the first C with the best rounded accuracy are those of SentEval's
`tools/validation.py` for scikit-learn; the solver is scikit-learn's default of today (lbfgs, multinomial),
where SentEval took the default of its time. SimCSE and the AnglE papers ran SentEval's other classifier, a
layer trained by Adam for 4 epochs: their figures are not the same measurement.

Source: Conneau and Kiela, SentEval (https://arxiv.org/abs/1803.05449).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.columns import class_in, pair_in, text_in
from angle_train.evaluation.similarity import Encode, Item
from angle_train.evaluation.statistics import FScore, MeanOf, Statistic
from angle_train.evaluation.task import HubData, Outcome, Settings, TaskData
from angle_train.evaluation.tasks.sources import Source

FOLDS = 10
GRIDS = {
    "nested": tuple(2.0**t for t in range(-2, 4)),
    "folds": tuple(2.0**t for t in range(-1, 6)),
    "split": tuple(2.0**t for t in range(-2, 4)),
}
"""Protocol -> values of C that are tried."""
_MAX_ITERATIONS = 1000
_NO_LABEL = ("-1", "-")  # annotators did not agree; SNLI has some, by both names
_HELD_OUT = 0.1

Protocol = Literal["nested", "folds", "split"]
Input = Literal["text", "difference", "joined"]
Ints = NDArray[np.int64]


Labelled = Sequence[tuple[Item, str]]
"""Texts, or pairs of texts, each with its class, see `columns.class_in`."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Features (N, D) and classes (N,)."""

    features: NDArray[np.float32]
    labels: Ints

    def take(self, rows: Ints) -> Examples:
        """Return the examples at `rows`."""
        return Examples(self.features[rows], self.labels[rows])


@dataclass(frozen=True, slots=True)
class Classified:
    """What a protocol said of every judged example, in their order.

    Attributes:
        predicted: Classes (n,).
        weights: (n,), what each example counts for in the accuracy: folds count alike, whatever their size.
        regularisation: The chosen C of every fold, or of the one classifier.
        dev_accuracy: Mean accuracy that the choice was made by, 0..1.
    """

    predicted: Ints
    weights: NDArray[np.float64]
    regularisation: tuple[float, ...]
    dev_accuracy: float


@dataclass(frozen=True, slots=True)
class TransferTask:
    """Classes of texts or of text pairs, by logistic regression.

    Attributes:
        data: Where they are.
        standard_size: Judged texts of the published set.
        protocol: `nested` judges the one split in folds; `folds` chooses C in folds of train; `split` chooses
            it on the validation split, or on a tenth of train where there is none.
        train: The split to learn from, or the only one.
        test: The split that is judged.
        features: `text`: the embedding; `difference`: |u-v| and u·v of a pair's embeddings; `joined`: the
            embedding of `[CLS]a[SEP]b[SEP]`, pooled as the model does; a prefix prompt stands before a only.
        f1: Whether F1 of class 1 is reported too.
        note: Of what a reader of the figures must know.
    """

    data: TaskData
    standard_size: int | None
    protocol: Protocol
    train: str = "train"
    test: str = "test"
    features: Input = "text"
    f1: bool = False
    note: str | None = None

    def load(self, source: Source) -> dict[str, Labelled]:
        """Read `train`, perhaps `validation`, and `test`, if not all of `train` is judged; see `Task`."""
        parts = {"train": self._read(source, self.train)}
        classes = _classes(parts["train"])
        with_dev = self.protocol == "split" and self.test != "validation"
        with_dev = with_dev and source.has(self.data, "validation")
        self._check_sizes(parts["train"], with_dev)
        if self.f1 and "1" not in classes:
            raise InputError(f"{self._named(self.train)}: no text of class 1, which F1 is about")
        if with_dev:
            parts["validation"] = self._read(source, "validation", classes)
        if self.protocol != "nested":
            parts["test"] = self._read(source, self.test, classes)
        return parts

    def measure(self, data: dict[str, Labelled], encode: Encode, settings: Settings) -> Outcome:
        """Train the classifiers and judge them."""
        classes = _classes(data["train"])
        parts = {name: self._examples(part, encode, classes) for name, part in data.items()}
        train, judged = parts["train"], parts.get("test", parts["train"])
        found = classify(self.protocol, train, parts.get("validation"), judged, settings.seed)
        correct = (found.predicted == judged.labels).astype(np.float64)
        statistics: dict[str, Statistic] = {"accuracy": MeanOf(correct, found.weights)}
        if self.f1:
            one = classes.index("1")
            statistics["f1"] = FScore(judged.labels == one, found.predicted == one)
        details: dict[str, Any] = {
            "dev_accuracy": found.dev_accuracy,
            "C": list(found.regularisation),
            "train": len(train.labels),
        }
        return Outcome(statistics, details | ({"note": self.note} if self.note else {}))

    def _examples(self, part: Labelled, encode: Encode, classes: Sequence[str]) -> Examples:
        labels = np.array([classes.index(label) for _, label in part], dtype=np.int64)
        if self.features != "difference":
            return Examples(encode([item for item, _ in part]), labels)
        u, v = (encode([item[side] for item, _ in part]) for side in (0, 1))
        return Examples(np.hstack([np.abs(u - v), u * v]), labels)

    def _read(self, source: Source, split: str, known: Collection[str] | None = None) -> Labelled:
        """Read a split; `known` are the classes that it may have."""
        found = []
        for place, row in source.rows(self.data, split):
            label = class_in(row, place)
            if label in _NO_LABEL:
                continue
            if known is not None and label not in known:
                raise InputError(
                    f"{place}: class {label} is not among those of {self._named(self.train)}: "
                    f"{', '.join(known)}"
                )
            found.append((self._item(row, place), label))
        if not found:
            raise InputError(f"{self._named(split)}: no row has a label")
        found.sort(key=lambda pair: (_lengths(pair[0]), pair[1]))
        return found

    def _check_sizes(self, train: Labelled, validation: bool) -> None:
        """Check that there are classes to tell apart and enough texts to choose C on.

        Raises:
            InputError: There are not; says what is needed.
        """
        counts = Counter(label for _, label in train)
        rarest = min(counts.values())
        # Nested: what is left of a class outside of a fold is divided into ten again. A tenth that is held
        # out must have a text of each class.
        least = {"nested": FOLDS + 2, "folds": FOLDS, "split": 1 if validation else FOLDS}[self.protocol]
        if len(counts) < 2 or rarest < least:
            raise InputError(
                f"{self._named(self.train)}: {len(counts)} classes, the rarest with {rarest} of "
                f"{counts.total()} texts; two classes of at least {least} each are needed"
            )

    def _named(self, split: str) -> str:
        return f"{self.data.folder}/{split}"

    def _item(self, row: dict[str, Any], place: str) -> Item:
        if self.features != "text":
            return pair_in(row, place)
        return text_in(row, "text" if "text" in row else "sentence", place)


def _classes(train: Labelled) -> list[str]:
    return sorted({label for _, label in train})


def classify(
    protocol: Protocol, train: Examples, dev: Examples | None, judged: Examples, seed: int
) -> Classified:
    """Judge examples by classifiers whose C is chosen without them.

    Args:
        protocol: `nested`: `judged` is `train`, each fold judged by a classifier of the others, whose C is
            chosen in folds of these; `folds`: chosen in folds of train; `split`: on `dev`.
        train: What is learned from.
        dev: What `split` chooses C on; default a tenth of train, which is then not learned from.
        judged: What is judged.
        seed: Decides the folds, and the tenth.
    """
    if protocol == "split" and dev is None:
        train, dev = _hold_out(train, seed)
    rounds = [(train, np.arange(len(judged.labels)))]
    if protocol == "nested":
        rounds = [(train.take(rest), rows) for rest, rows in _folds(train, seed)]
    predicted, weights = np.zeros_like(judged.labels), np.zeros(len(judged.labels))
    chosen, accuracies = [], []
    for learned, rows in rounds:
        parts = (
            [(learned, dev)] if dev else [tuple(map(learned.take, fold)) for fold in _folds(learned, seed)]
        )
        means = [
            float(np.mean([_fit(a, c, seed).score(b.features, b.labels) for a, b in parts]))
            for c in GRIDS[protocol]
        ]
        best = int(np.argmax([round(100 * mean, 2) for mean in means]))
        chosen.append(GRIDS[protocol][best])
        accuracies.append(means[best])
        predicted[rows] = _fit(learned, chosen[-1], seed).predict(judged.features[rows])
        weights[rows] = 1 / len(rows)
    return Classified(predicted, weights, tuple(chosen), float(np.mean(accuracies)))


def _folds(data: Examples, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows to learn from and those of the fold."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=seed)
    yield from folds.split(data.features, data.labels)


def _fit(data: Examples, c: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, random_state=seed, max_iter=_MAX_ITERATIONS).fit(
        data.features, data.labels
    )


def _hold_out(train: Examples, seed: int) -> tuple[Examples, Examples]:
    """Return nine tenths and one tenth of the examples, with the same share of each class."""
    from sklearn.model_selection import train_test_split

    rows: Ints = np.arange(len(train.labels))
    kept, held = train_test_split(rows, test_size=_HELD_OUT, random_state=seed, stratify=train.labels)
    return train.take(kept), train.take(held)


def _lengths(item: Item) -> tuple[int, ...]:
    return tuple(len(text.split()) for text in ((item,) if isinstance(item, str) else item))


def _nested(name: str, size: int, hub: str, splits: str) -> TransferTask:
    data = TaskData(f"transfer/{name}", HubData(hub, splits={"all": splits}))
    return TransferTask(data, size, "nested", train="all")


MR = _nested("mr", 10_662, "cornell-movie-review-data/rotten_tomatoes", "train+validation+test")
CR = _nested("cr", 3775, "SetFit/SentEval-CR", "train+test")
SUBJ = _nested("subj", 10_000, "SetFit/subj", "train+test")
MPQA = _nested("mpqa", 10_606, "jxm/mpqa", "train+test")
SST2 = TransferTask(
    TaskData("transfer/sst2", HubData("SetFit/sst2")),
    1821,
    "split",
    note="trained on whole sentences; SentEval trains on 67,349 phrases of them",
)
_TREC_SPLITS = {"train": "train", "test": "test"}
TREC = TransferTask(
    TaskData("transfer/trec", HubData("CogComp/trec", None, _TREC_SPLITS, "refs/convert/parquet")),
    500,
    "folds",
)
_MRPC_SPLITS = {"train": "train+validation", "test": "test"}
MRPC = TransferTask(
    TaskData("mrpc", HubData("nyu-mll/glue", "mrpc", _MRPC_SPLITS)),
    1725,
    "folds",
    features="difference",
    f1=True,
)
NLI = TransferTask(TaskData("nli"), None, "split", test="validation", features="joined")
SNLI = TransferTask(TaskData("snli", HubData("stanfordnlp/snli")), 9824, "split", features="joined")
_MNLI_SPLITS = {"train": "train", "test": "validation_matched+validation_mismatched"}
MNLI = TransferTask(
    TaskData("mnli", HubData("nyu-mll/multi_nli", splits=_MNLI_SPLITS)), 19_647, "split", features="joined"
)
