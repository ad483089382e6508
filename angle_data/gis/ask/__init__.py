"""Doubtful comments to an annotator, its answers to the build: `gis --ask MODEL`.

In: `crawl.sqlite`, and the options of who is asked (`annotators.spec.EngineConfig`). Out: `build.answers`,
a pure function of the store and the journal; and a run folder `asked/MODEL/` with journal.jsonl, run.json,
answers.jsonl and rejected.jsonl.

In reading order:

- `config`: the options of `gis`, and who is asked
- `ask`: asks, or forecasts what would be asked
- `questions`: which comments are doubtful, and what an annotator is told of each
- `job`: the requests, and the answers that follow from the replies
- `replies`: what one reply says, or why it is refused
"""
