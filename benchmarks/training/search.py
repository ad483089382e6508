"""Search before and after tuning: what people's pairs, mined negatives and SimCSE bring (../log/search.md).

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/search.py bug-titles community-questions --seeds 1

bug-titles: the title of a report finds the titles of its duplicates among all of the validation part.
community-questions: a question finds the relevant ones among all that were retrieved for any question.
Every arm starts from the whole MiniLM and sees the dev pairs (people's); the figures are of the tuned
weights, whether or not the rule took them. Finished runs are not repeated.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, data_folder, minilm, options, save_results  # noqa: E402
from llm_supervised import rows_of  # noqa: E402

from angle_data import mine  # noqa: E402
from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl, write_text  # noqa: E402
from angle_data.text import content_id, stable_hash  # noqa: E402
from angle_train import evaluate, fit  # noqa: E402
from angle_train.encode import encode_file  # noqa: E402
from angle_train.options import EncodeConfig  # noqa: E402

OUT = RESULTS / "training" / "search"
METRICS = ("ndcg@10", "mrr@10", "recall@10", "recall@100")


@dataclass(frozen=True)
class Domain:
    """A search, and what is trained on for it: files of answered queries, passages and dev pairs."""

    search: Path
    answered: Path
    passages: Path
    dev: Path
    tokens: int


def write_search(folder: Path, documents: dict[str, str], asked: dict[str, dict[str, int]]) -> Path:
    """Write a search: documents by id, and for each query's id, among the documents or not, its grades."""
    write_jsonl(folder / "corpus.jsonl", ({"_id": at, "text": text} for at, text in documents.items()))
    lines = [f"{query}\t{at}\t{grade}" for query, found in asked.items() for at, grade in found.items()]
    write_text(folder / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return folder


def bug_titles() -> Domain:
    """Make the search for duplicates by title."""
    folder, data = OUT / "bug-titles", data_folder() / "data" / "bug-duplicates"
    clusters: dict[str, list[str]] = {}
    titles = {row["id"]: row["title"] for row in rows_of(data / "issues-validation.jsonl.gz")}
    for row in rows_of(data / "issues-validation.jsonl.gz"):
        clusters.setdefault(str(row["cluster"]), []).append(row["id"])
    asked = {
        one: dict.fromkeys((other for other in ids if other != one), 1)
        for ids in clusters.values()
        for one in ids
        if len(ids) > 1
    }
    search = write_search(folder / "search", titles, asked)
    write_jsonl(search / "queries.jsonl", ({"_id": at, "text": titles[at]} for at in asked))
    held = {
        row["id"]: stable_hash(str(row["cluster"])) % 7 == 0
        for row in rows_of(data / "issues-train.jsonl.gz")
    }
    pairs = [
        (
            row["text1"].split("\n")[0],
            row["text2"].split("\n")[0],
            row["label"],
            held[f"{row['source']}:{row['id1']}"],
        )
        for row in rows_of(data / "train.jsonl.gz")
    ]
    return written(
        folder,
        search,
        [(one, other) for one, other, label, dev in pairs if label and not dev],
        [row["title"] for row in rows_of(data / "issues-train.jsonl.gz") if not held[row["id"]]],
        [(one, other, label) for one, other, label, dev in pairs if dev],
        32,
    )


def community_questions() -> Domain:
    """Make the search for relevant questions."""
    folder, data = OUT / "community-questions", data_folder() / "data" / "cqa-qatarliving"
    train, validation, test = (rows_of(data / f"{part}.jsonl.gz") for part in ("train", "validation", "test"))
    documents = {content_id(row["text2"]): row["text2"] for row in (*test, *validation, *train)}
    asked: dict[str, dict[str, int]] = {}
    queries = {f"q{content_id(row['text1'])}": row["text1"] for row in test}
    for row in test:
        asked.setdefault(f"q{content_id(row['text1'])}", {})[content_id(row["text2"])] = row["grade"]
    search = write_search(folder / "search", documents, asked)
    write_jsonl(search / "queries.jsonl", ({"_id": at, "text": text} for at, text in queries.items()))
    return written(
        folder,
        search,
        [(row["text1"], row["text2"]) for row in train if row["label"]],
        list(dict.fromkeys(row["text2"] for row in train)),
        [(row["text1"], row["text2"], row["grade"] / 2) for row in validation],
        64,
    )


def written(
    folder: Path, search: Path, answered: list[Any], passages: list[str], dev: list[Any], tokens: int
) -> Domain:
    """Write what is trained on."""
    files = [folder / f"{name}.jsonl" for name in ("answered", "passages", "dev")]
    write_jsonl(files[0], ({"query": one, "positive": other} for one, other in answered))
    write_jsonl(files[1], ({"text": text} for text in passages))
    write_jsonl(files[2], ({"text1": one, "text2": other, "score": score} for one, other, score in dev))
    return Domain(search, *files, tokens)


def negatives(domain: Domain, by: str) -> Path:
    """Mine negatives by words or embeddings."""
    out = domain.answered.with_name(f"negatives-{by}.jsonl")
    given: dict[str, Any] = {}
    if by == "embeddings":
        for option, texts, field in (
            ("embeddings", domain.passages, "text"),
            ("query_embeddings", domain.answered, "query"),
        ):
            given[option] = texts.with_suffix(".npy")
            encode_file(EncodeConfig(str(minilm()), texts, given[option], text_field=field, device="cpu"))
    mine(domain.passages, out=out, negatives=domain.answered, **given)
    return out


def tuned(domain: Domain, seed: int, out: Path, data: Path, **values: Any) -> list[dict[str, Any]]:
    """Train, and return the figures of the search."""
    return fit(
        data,
        backbone=minilm(),
        out=out,
        dev=domain.dev,
        test_search=domain.search,
        recipe="search",
        seed=seed,
        guard_loss=100.0,
        max_seq_length=domain.tokens,
        device="cpu",
        **values,
    ).figures


def simcse(domain: Domain, seed: int, out: Path) -> list[dict[str, Any]]:
    """Train on the passages alone, each its own positive under another dropout, with the library's loss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments

    if not (out / "modules.json").exists():
        model = SentenceTransformer(str(minilm()), device="cpu")
        model.max_seq_length = domain.tokens
        texts = [json.loads(line)["text"] for line in domain.passages.read_text().splitlines()]
        SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(out / "trainer"),
                num_train_epochs=1,
                per_device_train_batch_size=64,
                learning_rate=3e-5,
                seed=seed,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts}),
            loss=MultipleNegativesRankingLoss(model),
        ).train()
        model.save_pretrained(str(out), create_model_card=False)
    return evaluate(out, baseline=minilm(), search=domain.search, device="cpu").figures


ARMS: dict[str, Callable[[Domain, int, Path], list[dict[str, Any]]]] = {
    "SimCSE": simcse,
    "people's pairs": lambda d, seed, out: tuned(d, seed, out, d.answered, loss="positives", source_block=1),
    "and negatives by words": lambda d, seed, out: tuned(d, seed, out, negatives(d, "words")),
    "and negatives by embeddings": lambda d, seed, out: tuned(d, seed, out, negatives(d, "embeddings")),
}
DOMAINS = {"bug-titles": bug_titles, "community-questions": community_questions}


def main() -> None:
    """Train every arm with every seed and print the figures of the search."""
    parser = options(__doc__)
    parser.add_argument("domains", nargs="+", choices=list(DOMAINS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    found: dict[str, Any] = {}
    for name in arguments.domains:
        domain = DOMAINS[name]()
        for seed in arguments.seeds:
            for arm, run in ARMS.items():
                begun = time.process_time()
                rows = [
                    row for row in run(domain, seed, OUT / name / f"{arm}-{seed}") if row["metric"] in METRICS
                ]
                of = found.setdefault(name, {}).setdefault(arm, {})
                of[seed] = {"rows": rows, "cpu_s": round(time.process_time() - begun)}
                for row in rows:
                    gain = ""
                    if row["difference"] is not None:
                        gain = "{difference:+.1f} [{difference_low:+.1f}, {difference_high:+.1f}]".format(
                            **row
                        )
                    score = "{score:5.1f} [{low:.1f}, {high:.1f}]".format(**row)
                    print(
                        f"{name} {arm} {seed} {row['metric']:<10} {row['model']:<16} {score} {gain}",
                        flush=True,
                    )
                save_results("search", found)


if __name__ == "__main__":
    main()
