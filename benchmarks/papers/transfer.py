"""Classification with frozen embeddings: SentEval's transfer tasks, and inference on joined sentences.

Logistic regression by SentEval's protocols. MR, CR, SUBJ and MPQA: nested cross-validation in ten folds.
TREC and MRPC: C (inverse strength of the L2 penalty) chosen in ten folds of train. SST2 and inference: C
chosen on the validation split. Texts are put into SentEval's order (by number of words, then label) first,
since its folds depend on it; texts alike in both stay in the order of the file.

Folds and grids of C are those of SentEval's `tools/validation.py` for scikit-learn, and of equally good C the
first is taken; the solver is scikit-learn's default of today (lbfgs, multinomial), where SentEval took the
default of its time. Accuracy is over texts, where SentEval takes the mean of ten folds of nearly equal size.
SimCSE and the AnglE papers ran SentEval's other classifier, a layer trained by Adam for 4 epochs: their
figures are not the same measurement.

Source: Conneau and Kiela, SentEval (https://arxiv.org/abs/1803.05449).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from classes import class_in
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.sources import pair_in, text_in
from angle_train.evaluation.compare import Outcome
from angle_train.evaluation.statistics import mean_of
from angle_train.evaluation.task import Source, TaskData

SEED = 1111
"""Of the folds and held-out parts: SentEval's."""
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
Item = str | tuple[str, str]
"""What is encoded: a text, or two as one input, `[CLS]a[SEP]b[SEP]`."""
Encode = Callable[[Sequence[Item]], NDArray[np.float32]]
"""Gives embeddings (N, D) of N items in their order."""
Labelled = Sequence[tuple[Item, str]]
"""Texts, or pairs of texts, each with its class, see `classes.class_in`."""
Examples = tuple[NDArray[np.float32], Ints]
"""Features (N, D) and classes (N,)."""


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
    """

    data: TaskData
    standard_size: int | None
    protocol: Protocol
    train: str = "train"
    test: str = "test"
    features: Input = "text"

    def load(self, source: Source) -> dict[str, Labelled]:
        """Read `train`, perhaps `validation`, and `test`, if not all of `train` is judged; see `Task`."""
        parts = {"train": self._read(source, self.train)}
        classes = _classes(parts["train"])
        self._check_sizes(parts["train"])
        with_dev = self.protocol == "split" and self.test != "validation"
        if with_dev and source.has(self.data, "validation"):
            parts["validation"] = self._read(source, "validation", classes)
        if self.protocol != "nested":
            parts["test"] = self._read(source, self.test, classes)
        return parts

    def measure(self, data: dict[str, Labelled], encode: Encode) -> Outcome:
        """Train the classifiers and judge them."""
        classes = _classes(data["train"])
        parts = {name: self._examples(part, encode, classes) for name, part in data.items()}
        train, judged = parts["train"], parts.get("test", parts["train"])
        found = classify(self.protocol, train, parts.get("validation"), judged[0], SEED)
        return Outcome({"accuracy": mean_of((found == judged[1]).astype(np.float64))})

    def _examples(self, part: Labelled, encode: Encode, classes: Sequence[str]) -> Examples:
        labels = np.array([classes.index(label) for _, label in part], dtype=np.int64)
        if self.features != "difference":
            return encode([item for item, _ in part]), labels
        u, v = (encode([item[side] for item, _ in part]) for side in (0, 1))
        return np.hstack([np.abs(u - v), u * v]), labels

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
            item: Item = (
                text_in(row, "text" if "text" in row else "sentence", place)
                if self.features == "text"
                else pair_in(row, place)
            )
            found.append((item, label))
        if not found:
            raise InputError(f"{self._named(split)}: no row has a label")
        found.sort(key=lambda pair: (_lengths(pair[0]), pair[1]))
        return found

    def _check_sizes(self, train: Labelled) -> None:
        """Refuse what has no classes to tell apart, or too few texts of one to divide them into ten twice."""
        counts = Counter(label for _, label in train)
        if len(counts) < 2 or min(counts.values()) < FOLDS + 2:
            raise InputError(
                f"{self._named(self.train)}: {len(counts)} classes, the rarest with {min(counts.values())} "
                f"of {counts.total()} texts; two classes of at least {FOLDS + 2} each are needed"
            )

    def _named(self, split: str) -> str:
        return f"{self.data.folder}/{split}"


def _classes(train: Labelled) -> list[str]:
    return sorted({label for _, label in train})


def classify(
    protocol: Protocol, train: Examples, dev: Examples | None, judged: NDArray[np.float32], seed: int
) -> Ints:
    """Return what classifiers whose C is chosen without them say of texts with these features.

    Args:
        protocol: `nested`: `judged` is `train`, each fold judged by a classifier of the others, whose C is
            chosen in folds of these; `folds`: chosen in folds of train; `split`: on `dev`.
        train: What is learned from.
        dev: What `split` chooses C on; default a tenth of train, which is then not learned from.
        judged: What is judged: features (n, D).
        seed: Decides the folds, and the tenth.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import (
        GridSearchCV,
        PredefinedSplit,
        StratifiedKFold,
        cross_val_predict,
        train_test_split,
    )

    model, grid = LogisticRegression(random_state=seed, max_iter=_MAX_ITERATIONS), {"C": GRIDS[protocol]}
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    found: Ints
    if protocol == "nested":
        found = cross_val_predict(GridSearchCV(model, grid, cv=folds), *train, cv=folds)
    elif protocol == "folds":
        found = GridSearchCV(model, grid, cv=folds).fit(*train).predict(judged)
    else:
        if dev is None:
            x, held_x, y, held_y = train_test_split(
                *train, test_size=_HELD_OUT, random_state=seed, stratify=train[1]
            )
            train, dev = (x, y), (held_x, held_y)
        both = np.concatenate([train[0], dev[0]]), np.concatenate([train[1], dev[1]])
        split = PredefinedSplit([-1] * len(train[1]) + [0] * len(dev[1]))
        best = GridSearchCV(model, grid, cv=split, refit=False).fit(*both).best_params_
        found = model.set_params(**best).fit(*train).predict(judged)
    return found


def _lengths(item: Item) -> tuple[int, ...]:
    return tuple(len(text.split()) for text in ((item,) if isinstance(item, str) else item))


def _nested(name: str, size: int, hub: str, splits: str) -> TransferTask:
    data = TaskData(f"transfer/{name}", hub, splits={"all": splits})
    return TransferTask(data, size, "nested", train="all")


MR = _nested("mr", 10_662, "cornell-movie-review-data/rotten_tomatoes", "train+validation+test")
CR = _nested("cr", 3775, "SetFit/SentEval-CR", "train+test")
SUBJ = _nested("subj", 10_000, "SetFit/subj", "train+test")
MPQA = _nested("mpqa", 10_606, "jxm/mpqa", "train+test")
SST2 = TransferTask(  # trained on whole sentences; SentEval trains on 67,349 phrases of them
    TaskData("transfer/sst2", "SetFit/sst2"), 1821, "split"
)
_TREC_SPLITS = {"train": "train", "test": "test"}
TREC = TransferTask(
    TaskData("transfer/trec", "CogComp/trec", None, _TREC_SPLITS, "refs/convert/parquet"),
    500,
    "folds",
)
_MRPC_SPLITS = {"train": "train+validation", "test": "test"}
MRPC = TransferTask(
    TaskData("mrpc", "nyu-mll/glue", "mrpc", _MRPC_SPLITS),
    1725,
    "folds",
    features="difference",
)
NLI = TransferTask(TaskData("nli"), None, "split", test="validation", features="joined")
SNLI = TransferTask(TaskData("snli", "stanfordnlp/snli"), 9824, "split", features="joined")
_MNLI_SPLITS = {"train": "train", "test": "validation_matched+validation_mismatched"}
MNLI = TransferTask(
    TaskData("mnli", "nyu-mll/multi_nli", splits=_MNLI_SPLITS), 19_647, "split", features="joined"
)
