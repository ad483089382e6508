"""Candidates of several annotators, and grades of them, in; one labelled data set out.

Read in this order:

- `command`: the options of `angle-data ensemble` and the table it prints
- `build`: one build from runs to files, step by step
- `read`: runs and grades from disk; candidates grouped by source text
- `screen`: which candidates are usable at all (gate and topic check), and every reason code
- `strategies`: which offers are one pair, what is kept by `concat` and `vote`, the cap on a
  source, the registry of strategies
- `principled`: the strategy that weighs annotators and grades (Dawid and Skene)
- `graders`: which graders are believed, and what is said about their grades
- `labels`: polarity and grade to label and score; random pairs
- `splits`: which sources share a split
- `report`: the counts on the terminal, `report.json` and the card
"""
