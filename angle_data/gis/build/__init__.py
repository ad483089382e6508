"""Statements of duplication to a data set of labelled pairs, without network.

In: `crawl.sqlite`, options, a seed. Out: `dataset/` (parquet and card), `audit/` (every statement and why it
counts or not), `report.json`, `figures/`. The files in the order in which data passes them:

- `build`: the whole build, top to bottom; start here
- `evidence`: reads the store thread by thread; who calls which issues duplicates, and what backs it
- `facts`: what backs a statement, guesses that are confirmed and bare numbers beside a label among it
- `answers`: what an annotator said of doubtful comments, and what follows
- `links`: accepts, suspends or rejects every statement, with a reason
- `forms`: the lines of a repository's issue forms
- `clean`: title and body of an issue to its text, without what would tell the label
- `scrub`: secrets, addresses and logins out of a text
- `near`: how alike two texts are
- `positives`: links to clusters, clusters to positive pairs; those all but identical are dropped
- `splits`: every issue to train, validation or test, so that nothing is in two
- `negatives`: another partner for every duplicate: at random, near by words, or said to be none
- `dataset`: rows to parquet and back
- `report`: lengths, overlap, counts, checks and figures
- `card`: the report as the data set's README; its text is `card.md.txt`
"""
