"""Texts or pairs in, candidates or grades out: the commands llm-label and llm-score, and mine for pairs.

In: a file of texts or pairs, and the options of who is asked (`annotators.spec.EngineConfig`). Out: a run
folder with journal.jsonl, run.json, rejected.jsonl, and candidates.jsonl or scores.jsonl.

In reading order:

- `command`: makes the commands from their options, and prints what they return
- `config`: the options of llm-label, llm-score and probe
- `label`: llm-label: requests from texts, candidates from replies
- `pilot`: its forecasts: --dry-run, and --pilot, which asks about a sample first
- `score`: llm-score: requests from pairs, grades from replies
- `probe`: two questions before money is spent
- `mine`: pairs to be graded, among the texts or among what was written for each
- `negatives`: of queries, passages that look as if they answered them and do not, for training a search
- `vectors`: embeddings that `angle-train encode` wrote, for `mine`
- `texts`: the rows of a file as texts or as pairs
- `arriving`: texts from stdin or the hub, as a file
- `prompts`: prompt files and their placeholders
- `asking/`: one session of asking, with its journal and limits
- `replies/`: what a raw reply says
"""
