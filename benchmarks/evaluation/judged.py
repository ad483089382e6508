"""Judged evaluation: how wide and how right its intervals are, and those of pairs that share texts.

    python benchmarks/evaluation/judged.py made        # grades and models that are made up
    python benchmarks/evaluation/judged.py equal       # the same, of two models that are equally good
    python benchmarks/evaluation/judged.py real --mpnet MPNET   # STS-B: people, an LLM, real models
    python benchmarks/evaluation/judged.py domains --mpnet MPNET   # four domains that people labelled
    python benchmarks/evaluation/judged.py folds       # beside k-fold, which `fit --human` does
    python benchmarks/evaluation/judged.py sharing     # pairs that share texts: four ways to draw them
    python benchmarks/evaluation/judged.py shared      # a language model's grades of pairs that share texts

Each row is `--draws` samples: of how many the 95 % interval holds the truth (`coverage`), how wide it is
beside the interval by people's grades alone (`width`), how often it is wider than that (`wider`), and how
many graded pairs would make that as sure (`like`). `naive` trusts the language model's grades. `better` is
how often the new model is called better: where both are equally good, a false adoption. Figures are those of
`evaluation.judged.with_judge`, widened for shared texts, as `eval` prints them.
`real` and `domains` need ANGLE_BENCH_DATA (see ../README.md), `real` with llm-stsb/grader-m-validation.jsonl
in it. `domains` takes the grades of ../domains, which are of the training splits, and people's labels.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import data_folder, minilm, options, save_results

from angle_data.disjoint import DisjointSets
from angle_train.data.judged import JudgedPairs
from angle_train.data.pairs import PairSet
from angle_train.evaluation.judged import figures_of, grades_of, with_judge
from angle_train.evaluation.sharing import Sharing
from angle_train.evaluation.statistics import (
    Drawn,
    draw,
    draw_figures,
    interval_around,
    spearman,
    spearman_of,
)

Array = NDArray[np.float64]
_POPULATION = 200_000
_RESAMPLES, _JUDGED = 400, 300
_DOMAIN, _JUDGED_OF_DOMAIN = 2_000, 600
"""Pairs of a domain that the truth is read off, drawn once, and those of a sample that were judged."""
_NUMBERS = (20, 30, 50, 100, 200)
GRADERS: dict[str, Callable[[np.random.Generator, Array, Array], Array]] = {
    "good": lambda rng, meant, new: _halves(meant + rng.normal(0, 0.5, len(meant))),
    "noisy": lambda rng, meant, new: _halves(meant + rng.normal(0, 1.2, len(meant))),
    "biased": lambda rng, meant, new: _halves(meant**2 / 5 - 0.7 + rng.normal(0, 0.5, len(meant))),
    "favours the new model": lambda rng, meant, new: _halves((meant + new) / 2),
    "random": lambda rng, meant, new: rng.integers(0, 11, len(meant)) / 2,
}
"""Grades of a language model, from what people mean and what the new model says of the pairs."""
DISTANCES = {"far": (0.9, 0.55, 0.4), "near": (0.7, 0.6, 0.8)}
"""Noise of the old and of the new model, and the share of it that they have in common."""
EQUAL = {"equal, unlike": (0.6, 0.6, 0.2), "equal, alike": (0.6, 0.6, 0.8)}
"""The same of models that are equally good."""


@dataclass(frozen=True)
class World:
    """People's grades, a language model's, and what the old and the new model say of many pairs."""

    people: Array
    grader: Array
    models: Mapping[str, Array]
    texts: Sequence[tuple[str, str]] | None = None
    """Of each pair; all differ if there are none."""

    @property
    def truth(self) -> float:
        """The difference that all people's grades show."""
        return spearman(self.people, self.models["new"]) - spearman(self.people, self.models["old"])

    @property
    def by_grader(self) -> float:
        """The difference that all of the language model's grades show: what trusting it would say."""
        return spearman(self.grader, self.models["new"]) - spearman(self.grader, self.models["old"])


def _halves(grades: Array) -> Array:
    """Return grades as they are given: half points from 0 to 5."""
    result: Array = np.clip(np.round(2 * grades) / 2, 0, 5)
    return result


def made_world(grader: str, distance: str, size: int = _POPULATION, seed: int = 0) -> World:
    """Return a world of that grader and that distance of the models."""
    rng = np.random.default_rng(seed)
    old, new, common = (DISTANCES | EQUAL)[distance]
    meant = 5 * rng.beta(0.7, 0.9, size)
    both = np.sqrt(common) * rng.normal(0, 1, size)
    models = {
        name: meant / 1.6 + noise * (both + np.sqrt(1 - common) * rng.normal(0, 1, size))
        for name, noise in (("old", old), ("new", new))
    }
    people = np.clip(np.round(meant + rng.normal(0, 0.5, size)), 0, 5)
    return World(people, GRADERS[grader](rng, meant, 1.6 * models["new"]), models)


@dataclass(frozen=True)
class Sample:
    """Pairs that people graded, those that a language model graded too, and what two models say of both."""

    pairs: PairSet
    judged: JudgedPairs
    models: Mapping[str, Array]


def sample_of(
    texts: Sequence[tuple[str, str]], people: Array, grader: Array, models: Mapping[str, Array], graded: int
) -> Sample:
    """Return a sample of pairs, the first `graded` of which people graded."""
    first, second = (list(side) for side in zip(*texts, strict=True))
    whole = PairSet("made", first, second, grader, np.ones(len(grader)))
    own = replace(whole.take(list(range(graded)), "people"), score=people[:graded])
    rest = whole.take(list(range(graded, len(grader))), "grader")
    return Sample(own, JudgedPairs("grader", grader[:graded], rest), models)


def measured(
    world: World, graded: int, judged: int, draws: int, seed: int = 1, truth: float | None = None
) -> dict[str, float]:
    """Return how the intervals of the difference come out over samples of a world."""
    rng, truth = np.random.default_rng(seed), world.truth if truth is None else truth
    samples = []
    for _ in range(draws):
        at = rng.choice(len(world.people), judged, replace=False)
        texts = world.texts or _all_different(judged)
        texts = [texts[place] for place in at] if world.texts else texts
        columns = {name: column[at] for name, column in world.models.items()}
        samples.append(sample_of(texts, world.people[at], world.grader[at], columns, graded))
    return over(samples, truth)


def _all_different(count: int) -> list[tuple[str, str]]:
    return [(f"a {number}", f"b {number}") for number in range(count)]


def over(samples: Iterable[Sample], truth: float) -> dict[str, float]:
    """Return how the intervals of the difference come out over samples whose true difference is `truth`."""
    rows = []
    for number, sample in enumerate(samples):
        pairs, judged = sample.pairs, sample.judged
        found = with_judge(pairs, judged, sample.models, "old", number, _RESAMPLES)
        plain = figures_of(grades_of(pairs, judged), sample.models, number, _RESAMPLES)
        note, both = found.notes["new"], Sharing([pairs, judged.rest])
        alone = _widened(_gain(plain.people), Sharing([pairs]), len(pairs))
        surer = alone if note.unused else _widened(_gain(found.figures), both)
        naive = _widened(_gain(plain.many), both)
        (held, width), (surer_held, surer_width) = (_held(figure, truth) for figure in (alone, surer))
        rows.append(
            [
                *(held, width, surer_held, surer_width, *_held(naive, truth)),
                *(_better(figure) for figure in (alone, surer, naive)),
                surer_width > 1.001 * width,
                *(note.counts_like, note.agreement, note.weight, bool(note.unused)),
            ]
        )
    names = ("alone", "alone_width", "coverage", "width", "naive", "naive_width")
    names += ("alone_better", "better", "naive_better", "wider")
    found_ = dict(zip((*names, "like", "agreement", "weight", "unused"), np.mean(rows, axis=0), strict=True))
    found_["width"] /= found_["alone_width"]
    return {name: round(float(value), 3) for name, value in found_.items()}


def _gain(figures: Mapping[str, Drawn]) -> Drawn:
    return figures["new"].minus(figures["old"])


def _widened(figure: Drawn, sharing: Sharing, count: int | None = None) -> Drawn:
    """Return a figure whose resamples are as far apart as sharing makes them; only `count` pairs move it."""
    of = Drawn(figure.value, figure.drawn, figure.pull[:count])
    return Drawn(of.value, sharing.widened(of), of.pull)


def _held(figure: Drawn, truth: float) -> tuple[bool, float]:
    interval = interval_around(figure.value, figure.drawn)
    return interval.low <= truth <= interval.high, interval.high - interval.low


def _better(figure: Drawn) -> bool:
    return interval_around(figure.value, figure.drawn).low > 0


def made(
    draws: int, numbers: tuple[int, ...] = _NUMBERS, distances: Sequence[str] = tuple(DISTANCES)
) -> Iterator[dict[str, object]]:
    """Yield a row for every grader, distance and number of graded pairs, with 300 judged ones."""
    for distance in distances:
        for grader in GRADERS:
            world = made_world(grader, distance)
            said = {"grader": grader, "distance": distance, "truth": world.truth, "judge": world.by_grader}
            for graded in numbers:
                yield said | {"graded": graded} | measured(world, graded, _JUDGED, draws, truth=world.truth)


def real(draws: int, mpnet: str | None) -> Iterator[dict[str, object]]:
    """Yield rows on STS-B's validation pairs that a language model graded too.

    The truth is what people say of all 400, so a sample of them holds a part of it; coverage is flattered by
    that, with many graded pairs, for all kinds of intervals alike.
    """
    folder = data_folder()
    rows = _lines(folder / "llm-stsb" / "grader-m-validation.jsonl")
    models = {"three layers": str(minilm(3)), "six layers": str(minilm())}
    models |= {"mpnet": mpnet} if mpnet else {}
    columns = {name: _cosines(path, rows) for name, path in models.items()}
    people, grader = (np.array([row[name] for row in rows], np.float64) for name in ("human", "grade"))
    rng = np.random.default_rng(0)
    others = {"grader-m": grader, "random grades": rng.integers(0, 11, len(rows)) / 2}
    for said, grades in others.items():
        for old, new in zip(list(models), list(models)[1:], strict=False):
            world = World(people, grades, {"old": columns[old], "new": columns[new]})
            for graded in (30, 50, 100):
                yield {
                    "grader": said, "models": f"{old}, {new}", "truth": world.truth, "graded": graded,
                } | measured(world, graded, len(rows), draws)  # fmt: skip


def of_domains(draws: int, numbers: Sequence[int], mpnet: str | None) -> Iterator[dict[str, object]]:
    """Yield rows on training pairs of four domains: people labelled them, a language model graded them.

    The truth is what people say of 2,000 pairs of the domain, of which a sample has 600 that the language
    model graded.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "domains"))
    import domains

    for name in ("sick", "mrpc", "questions", "bug-titles"):  # whole reports have the grades of their titles
        made = domains.DOMAINS[name]()
        rows = labelled_and_graded(domains.rows_of(made.human), domains.rows_of(made.judged(None)), _DOMAIN)
        models = {"three layers": str(minilm(3)), "six layers": str(minilm())}
        models |= {"mpnet": mpnet} if mpnet else {}
        columns = {model: _cosines(path, rows) for model, path in models.items()}
        people, grader = (np.array([row[key] for row in rows], np.float64) for key in ("human", "grade"))
        for old, new in zip(list(models), list(models)[1:], strict=False):
            texts = [(str(row["sentence1"]), str(row["sentence2"])) for row in rows]
            world = World(people, grader, {"old": columns[old], "new": columns[new]}, texts)
            said = {"domain": name, "agreement of all": spearman(people, grader), "models": f"{old}, {new}"}
            for graded in numbers:
                figures = measured(world, graded, min(_JUDGED_OF_DOMAIN, len(rows)), draws)
                yield said | {"truth": world.truth, "judge": world.by_grader, "graded": graded} | figures


def labelled_and_graded(
    labelled: Sequence[Mapping[str, Any]], graded: Sequence[Mapping[str, Any]], count: int
) -> list[dict[str, object]]:
    """Return so many of the pairs that have both a label and a grade, drawn with a fixed seed."""
    labels = {(row["text1"], row["text2"]): row.get("score", row.get("label")) for row in labelled}
    both = [row for row in graded if (row["text1"], row["text2"]) in labels]
    places = np.random.default_rng(0).permutation(len(both))[:count]
    return [
        {
            "sentence1": (row := both[place])["text1"],
            "sentence2": row["text2"],
            "human": labels[row["text1"], row["text2"]],
            "grade": row["score"],
        }
        for place in places.tolist()
    ]


def _lines(path: Path) -> list[dict[str, object]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def _cosines(path: str, rows: list[dict[str, object]]) -> Array:
    from sentence_transformers import SentenceTransformer

    from angle_train.evaluation.similarity import cosine_rows

    model = SentenceTransformer(path, device="cpu")
    sides = ([str(row[name]) for row in rows] for name in ("sentence1", "sentence2"))
    return cosine_rows(*(model.encode(side) for side in sides))


def folds(draws: int) -> Iterator[dict[str, object]]:
    """Yield rows of k-fold and of judged evaluation on as many graded pairs.

    k-fold has people's grades alone, and of five models, each trained on four fifths of them. They say the
    pairs of one fifth each, and are worse than the final model by `behind` of its noise; each has a level of
    its own, which pooling mixes. All of that is assumed.
    """
    rng = np.random.default_rng(3)
    for behind in (0.0, 0.2):
        world = made_world("good", "far")
        truth = world.truth
        for graded in (30, 100):
            rows = []
            for number in range(draws):
                at = rng.choice(len(world.people), graded, replace=False)
                new = world.models["new"][at] + behind * 0.55 * rng.normal(0, 1, graded)
                new = new + rng.normal(0, 0.1, 5)[np.arange(graded) % 5]
                people = world.people[at]
                statistics = [spearman_of(people, column) for column in (world.models["old"][at], new)]
                before, after = draw_figures(statistics, _RESAMPLES, number)
                rows.append(_held(after.minus(before), truth))
            coverage, width = np.mean(rows, axis=0)
            judged = measured(world, graded, _JUDGED, draws, truth=truth)
            yield {
                "behind": behind, "graded": graded, "k-fold coverage": round(float(coverage), 3),
                "k-fold width": round(float(width), 3), "judged coverage": judged["coverage"],
                "judged width": round(judged["width"] * judged["alone_width"], 3),
            }  # fmt: skip


Structure = Callable[[np.random.Generator, int], tuple[NDArray[np.int64], NDArray[np.int64]]]
STRUCTURES: dict[str, Structure] = {
    "a question, ten answers": lambda rng, n: (np.repeat(np.arange(n // 10), 10), n + np.arange(n)),
    "ten texts, many partners": lambda rng, n: (np.repeat(np.arange(10), n // 10), n + np.arange(n)),
    "mined among few texts": lambda rng, n: (
        first := rng.integers(n // 3, size=n),
        (first + 1 + rng.integers(n // 3 - 1, size=n)) % (n // 3),
    ),
    "each text with its neighbours": lambda rng, n: (
        np.repeat(np.arange(n // 3), 3),
        (np.repeat(np.arange(n // 3), 3) + np.tile([1, 2, 3], n // 3)) % (n // 3),
    ),
    "hubs": lambda rng, n: (
        rng.choice(n // 2, n, p=(weights := 1 / np.arange(1, n // 2 + 1)) / weights.sum()),
        n + rng.integers(n // 2, size=n),
    ),
    "questions and answers, crossed": lambda rng, n: (rng.integers(30, size=n), n + rng.integers(60, size=n)),
    "no shared text": lambda rng, n: (np.arange(n), n + np.arange(n)),
}
"""Numbers of the two texts of each pair."""


def sharing(draws: int, size: int = 300) -> Iterator[dict[str, object]]:
    """Yield for every structure the coverage and width of the difference, four ways."""
    for name, structure in STRUCTURES.items():
        worlds = [_pairs_of_texts(np.random.default_rng((9, seed)), structure, size) for seed in range(300)]
        people, old, new = (np.concatenate([world[part] for world in worlds]) for part in (2, 3, 4))
        truth = spearman(people, new) - spearman(people, old)
        rows = []
        for seed in range(draws):
            first, second, *columns = _pairs_of_texts(np.random.default_rng((7, seed)), structure, size)
            rows.append(_four_ways(first, second, columns, truth, seed))
        found = np.mean(rows, axis=0)
        names = ("single pairs", "connected", "by the commoner text", "widened")
        yield {"structure": name} | {
            way: {"coverage": round(float(at[0]), 3), "width": round(float(at[1] / found[0][1]), 2)}
            for way, at in zip(names, found, strict=True)
        }


def _pairs_of_texts(
    rng: np.random.Generator, structure: Structure, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array, Array]:
    """Return the texts of pairs, people's grades, and what two models say; texts have effects on all."""
    first, second = structure(rng, size)
    texts = int(max(first.max(), second.max())) + 1
    effect = rng.normal(0, 1.2, (4, texts))
    of = effect[:, first] + effect[:, second]
    meant = of[0] + rng.normal(0, 1, size)
    people = np.round(2 * (meant + rng.normal(0, 0.5, size))) / 2
    old, new = (
        meant + 0.7 * (of[1] + of[n]) + rng.normal(0, noise, size) for n, noise in ((2, 1.1), (3, 0.8))
    )
    return first, second, people, old, new


def shared(draws: int, numbers: Sequence[int], size: int = 300) -> Iterator[dict[str, object]]:
    """Yield for every structure and grader how the intervals of the difference come out.

    People graded some of the pairs, drawn at random, and the grader all of them. A "partial" grader sees in
    a text what the new model sees in it.
    """
    for name, structure in STRUCTURES.items():
        worlds = [_pairs_of_texts(np.random.default_rng((9, seed)), structure, size) for seed in range(300)]
        people, old, new = (np.concatenate([world[part] for world in worlds]) for part in (2, 3, 4))
        truth = spearman(people, new) - spearman(people, old)
        for grader in ("good", "partial"):
            for graded in numbers:
                samples = (_sample_of_texts(seed, structure, size, grader, graded) for seed in range(draws))
                yield {"structure": name, "grader": grader, "graded": graded} | over(samples, truth)


def _sample_of_texts(seed: int, structure: Structure, size: int, grader: str, graded: int) -> Sample:
    rng = np.random.default_rng((7, seed))
    first, second, people, old, new = _pairs_of_texts(rng, structure, size)
    said = people if grader == "good" else (people + new) / 2
    grades = np.round(2 * (said + rng.normal(0, 0.7, size))) / 2
    order = rng.permutation(size)
    texts = [(str(first[place]), str(second[place])) for place in order]
    models = {"old": old[order], "new": new[order]}
    return sample_of(texts, people[order], grades[order], models, graded)


def _four_ways(
    first: NDArray[np.int64], second: NDArray[np.int64], columns: list[Array], truth: float, seed: int
) -> list[tuple[bool, float]]:
    people, *models = columns
    statistics = [spearman_of(people, column) for column in models]
    before, after = draw_figures(statistics, _RESAMPLES, seed)
    gain = after.minus(before)
    names = [list(map(str, side)) for side in (first, second)]
    pairs = PairSet("made", *names, people, np.ones(len(people)))
    widened = Drawn(gain.value, Sharing([pairs]).widened(gain), gain.pull)
    sets, often = DisjointSets[str](), Counter(names[0] + names[1])
    for one, other in zip(*names, strict=True):
        sets.join(one, other)
    groups = (
        [sets.leader(one) for one in names[0]],
        [max(pair, key=lambda text: (often[text], text)) for pair in zip(*names, strict=True)],
    )
    found = [_held(gain, truth)]
    for keys in groups:
        old, new = draw(statistics, _RESAMPLES, seed, keys)
        found.append(_held(Drawn(gain.value, new - old, gain.pull), truth))
    return [*found, _held(widened, truth)]


def main() -> None:
    """Print the rows of a part, and keep them."""
    parser = options(__doc__)
    parser.add_argument("part", choices=("made", "equal", "real", "domains", "folds", "sharing", "shared"))
    parser.add_argument("--draws", type=int, default=100, help="samples for each row")
    parser.add_argument("--mpnet", help="folder of all-mpnet-base-v2")
    parser.add_argument("--graded", type=int, nargs="+", default=_NUMBERS, help="numbers of graded pairs")
    asked: argparse.Namespace = parser.parse_args()
    found = {
        "made": lambda: made(asked.draws, tuple(asked.graded)),
        "equal": lambda: made(asked.draws, tuple(asked.graded), tuple(EQUAL)),
        "real": lambda: real(asked.draws, asked.mpnet),
        "domains": lambda: of_domains(asked.draws, asked.graded, asked.mpnet),
        "folds": lambda: folds(asked.draws),
        "sharing": lambda: sharing(asked.draws),
        "shared": lambda: shared(asked.draws, asked.graded),
    }[asked.part]()
    rows = []
    for row in found:
        rows.append(row)
        print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}), flush=True)
    save_results(f"judged-{asked.part}", rows)


if __name__ == "__main__":
    main()
