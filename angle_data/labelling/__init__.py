"""Texts or pairs in, candidates or grades out: the commands llm-label and llm-score.

In: a file of texts or pairs, and the options of who is asked (`annotators.spec.EngineConfig`). Out: a run
folder with journal.jsonl, run.json, rejected.jsonl, and candidates.jsonl or scores.jsonl.

In reading order:

- `command`: makes both commands from their options, and prints what they return
- `config`: the options of both commands
- `label`: llm-label: requests from texts, candidates from replies
- `score`: llm-score: requests from pairs, grades from replies
- `overlap`: what a run of degrees tells: sentences and shared words by degree
- `texts`: the rows of a file as texts or as pairs
- `prompts`: prompt files and their placeholders
- `session`: what a command brings, and one session of asking from start to verdict
- `forecast`: what a session would ask and cost
- `collect`: the asking itself: open requests, limits, interrupts
- `journal`: the replies on disk, found again by the key of their request (`annotators.base.request_key`)
- `budget`: token counts, and what the limits still allow
- `runfile`: run.json
- `replies/`: what a raw reply says
"""
