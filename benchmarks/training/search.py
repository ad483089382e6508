"""Search before and after tuning: what people's pairs, generated queries and SimCSE bring (../log/search.md).

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/search.py bug-titles community-questions --seeds 1

bug-titles: the title of a report finds the titles of its duplicates among all of the validation part.
community-questions: a question finds the relevant ones among all that were retrieved for any question.
Generated queries: what a language model wrote for training passages so that it means the same (degree 5,
then 4, of ../bug-titles and ../domains; by `prompts/degrees`, not `prompts/queries`). At most --pairs of
them, and as many pairs by people, drawn once; SimCSE gets at most --texts passages. Negatives come from all
passages. Every arm starts from the whole MiniLM and sees the same dev pairs (people's, at most 200); the
figures are of the tuned weights, whether or not the rule took them. Finished runs are not repeated.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, ROOT, data_folder, minilm, options, save_results  # noqa: E402
from llm_supervised import rows_of  # noqa: E402

from angle_data import mine  # noqa: E402
from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl, write_text  # noqa: E402
from angle_data.text import content_id, stable_hash  # noqa: E402
from angle_train import evaluate, fit  # noqa: E402
from angle_train.encode import encode_file  # noqa: E402
from angle_train.options import EncodeConfig  # noqa: E402

OUT = RESULTS / "training" / "search"
DEV, EPOCHS, BATCH = 200, 1.0, 48
METRICS = ("ndcg@10", "mrr@10", "recall@10", "recall@100")


@dataclass(frozen=True)
class Domain:
    """A search, and what is trained on for it: files of answered queries, passages and dev pairs.

    `people` are pairs by people, `generated` queries by a language model; `few` passages are for SimCSE.
    """

    search: Path
    people: Path
    generated: Path
    passages: Path
    few: Path
    dev: Path
    tokens: int


def write_search(folder: Path, documents: dict[str, str], asked: dict[str, dict[str, int]]) -> Path:
    """Write a search: documents by id, and for each query's id, among the documents or not, its grades."""
    write_jsonl(folder / "corpus.jsonl", ({"_id": at, "text": text} for at, text in documents.items()))
    lines = [f"{query}\t{at}\t{grade}" for query, found in asked.items() for at, grade in found.items()]
    write_text(folder / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return folder


def bug_titles(pairs_at_most: int, texts: int) -> Domain:
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
    known = {
        row["id"]: row["title"] for row in rows_of(data / "issues-train.jsonl.gz") if not held[row["id"]]
    }
    replies = [
        (known[row["id"]], row["reply"])
        for row in rows_of(ROOT / "benchmarks" / "bug-titles" / "annotator-h.jsonl")
        if row["id"] in known
    ]
    return written(
        folder,
        search,
        {
            "people": drawn(
                [(one, other) for one, other, label, dev in pairs if label and not dev], pairs_at_most
            ),
            "generated": queries_of(replies)[:pairs_at_most],
        },
        list(known.values()),
        texts,
        [(one, other, label) for one, other, label, dev in pairs if dev],
        32,
    )


def community_questions(pairs_at_most: int, texts: int) -> Domain:
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
    replies = []
    for row in rows_of(ROOT / "benchmarks" / "domains" / "questions.jsonl"):
        text = train[row["row"]]["text1"]
        if not hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"]):
            sys.exit(f"questions, row {row['row']}: not the text that the reply answers; another edition?")
        replies.append((text, row["reply"]))
    passages = [row["text2"] for row in train] + [text for text, _ in replies]
    return written(
        folder,
        search,
        {
            "people": drawn(
                [(row["text1"], row["text2"]) for row in train if row["label"]], 2 * len(replies)
            ),
            "generated": queries_of(replies)[:pairs_at_most],
        },
        list(dict.fromkeys(passages)),
        texts,
        [(row["text1"], row["text2"], row["grade"] / 2) for row in validation],
        32,
    )


def queries_of(replies: list[tuple[str, dict[str, str]]]) -> list[tuple[str, str]]:
    """Return the queries that a language model wrote, each with its passage; the closest first."""
    return [(reply[degree], passage) for degree in ("5", "4") for passage, reply in replies]


def drawn(rows: list[Any], count: int) -> list[Any]:
    """Return at most so many of the rows, the same ones each time."""
    return random.Random(7).sample(rows, min(count, len(rows)))


def written(
    folder: Path,
    search: Path,
    answered: dict[str, list[Any]],
    passages: list[str],
    texts: int,
    dev: list[Any],
    tokens: int,
) -> Domain:
    """Write what is trained on."""
    paths = {name: folder / f"{name}.jsonl" for name in (*answered, "passages", "few", "dev")}
    for name, pairs in answered.items():
        write_jsonl(paths[name], ({"query": one, "positive": other} for one, other in pairs))
    for name, rows in (("passages", passages), ("few", drawn(passages, texts))):
        write_jsonl(paths[name], ({"text": text} for text in rows))
    lines = ({"text1": one, "text2": other, "score": score} for one, other, score in drawn(dev, DEV))
    write_jsonl(paths["dev"], lines)
    return Domain(search, tokens=tokens, **paths)


def negatives(domain: Domain, answered: Path, by: str) -> Path:
    """Mine negatives of answered queries, by words or embeddings."""
    out = answered.with_name(f"{answered.stem}-negatives-{by}.jsonl")
    given: dict[str, Any] = {}
    if by == "embeddings":
        for option, texts, field in (
            ("embeddings", domain.passages, "text"),
            ("query_embeddings", answered, "query"),
        ):
            given[option] = texts.with_suffix(".npy")
            encode_file(EncodeConfig(str(minilm()), texts, given[option], text_field=field, device="cpu"))
    mine(domain.passages, out=out, negatives=answered, **given)
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
        epochs=EPOCHS,
        batch_size=BATCH,
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
        texts = [json.loads(line)["text"] for line in domain.few.read_text().splitlines()]
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
    "people's pairs": lambda d, seed, out: tuned(d, seed, out, d.people, loss="positives", source_block=1),
    "people's, negatives by words": lambda d, seed, out: tuned(d, seed, out, negatives(d, d.people, "words")),
    "people's, negatives by embeddings": lambda d, seed, out: tuned(
        d, seed, out, negatives(d, d.people, "embeddings")
    ),
    "generated, negatives by words": lambda d, seed, out: tuned(
        d, seed, out, negatives(d, d.generated, "words")
    ),
}
DOMAINS = {"bug-titles": bug_titles, "community-questions": community_questions}


def main() -> None:
    """Train every arm with every seed and print the figures of the search."""
    parser = options(__doc__)
    parser.add_argument("domains", nargs="+", choices=list(DOMAINS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    parser.add_argument("--pairs", type=int, default=240, help="at most so many pairs and generated queries")
    parser.add_argument("--texts", type=int, default=1000, help="at most so many passages for SimCSE")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    domains = {name: DOMAINS[name](arguments.pairs, arguments.texts) for name in arguments.domains}
    found: dict[str, Any] = {}
    for seed, (name, domain), arm in product(arguments.seeds, domains.items(), arguments.arms):
        begun = time.process_time()
        rows = [
            row for row in ARMS[arm](domain, seed, OUT / name / f"{arm}-{seed}") if row["metric"] in METRICS
        ]
        of = found.setdefault(name, {}).setdefault(arm, {})
        of[seed] = {"rows": rows, "cpu_s": round(time.process_time() - begun)}
        for row in rows:
            gain = ""
            if row["difference"] is not None:
                gain = "{difference:+.1f} [{difference_low:+.1f}, {difference_high:+.1f}]".format(**row)
            score = "{score:5.1f} [{low:.1f}, {high:.1f}]".format(**row)
            print(f"{name} {arm} {seed} {row['metric']:<10} {row['model']:<16} {score} {gain}", flush=True)
        print(f"{name} {arm} {seed}: {of[seed]['cpu_s']} CPU s", flush=True)
        save_results("search", found)


if __name__ == "__main__":
    main()
