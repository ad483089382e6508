"""Texts and GitHub in, labelled sentence pairs out. Never imports torch.

The rooms: `annotators` answer requests, `labelling` asks them, `ensembling` makes one data set of several
annotators' candidates, `gis` makes one of GitHub's duplicate issues, `publish` writes data sets. `cli` is the
program. What every room may use:

- `errors`: the errors a user can meet, and their exit codes
- `console`: error lines, logging, progress, results on stdout
- `records`: the rows that flow from one step to the next
- `text`: normal forms, words, overlap and stable hashes of texts
- `jsonl`: JSON Lines in and out, and files that are replaced whole
- `tables`: rows of .jsonl, .csv and .parquet files
- `locking`: one process at a time in a directory
- `resources`: packaged folders, registry entries, install commands
- `splits`: the shares of train, validation and test, and who goes where
- `disjoint`: which things belong together through any chain of links
- `http`: what an answer of a web service means for the next request
"""
