"""Candidates of several annotators, further pairs, and grades of both in; one labelled data set out.

Read in this order:

- `config`: the options of `angle-data ensemble`, and which strategies there are
- `command`: the table it prints
- `build`: one build from runs to files, step by step
- `read`: runs and grades from disk; candidates grouped by source text
- `given`: pairs that no annotator was asked for (`--pairs`), as far as they are graded
- `screen`: which candidates are usable at all (gate and topic check), and every reason code
- `strategies`: which offers are one pair, what is kept by `concat` and `vote`, the cap on a source
- `principled`: the strategy that weighs annotators and grades (Dawid and Skene)
- `graders`: which graders are believed, and what is said about their grades
- `scale`: what was asked for and what graders saw, as one level from 0 to 5
- `labels`: polarity, degree and level to label and score; random pairs
- `groups`: which sources share a split
- `report`: the counts on the terminal, `report.json` and the card
"""
