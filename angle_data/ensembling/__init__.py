"""Candidates of several annotators, further pairs, and grades of both in; one labelled data set out.

Read in this order:

- `config`: the options of `angle-data ensemble`, and which strategies there are
- `command`: the table it prints
- `build`: one build from runs to files, step by step
- `read`: runs and grades from disk; candidates grouped by source text
- `given`: pairs that no annotator was asked for (`--pairs`), as far as they are graded
- `screen`: which candidates are usable, which of these are one pair, and every reason code
- `evidence`: the one model of annotators and graders: whom to believe, and what each pair is
- `strategies`: what `concat`, `vote` and `principled` keep by that evidence; the cap on a source
- `scale`: what was asked for and what graders saw, as one level from 0 to 5
- `labels`: polarity, degree and level to label and score; random pairs
- `splits`: which split each text gets
- `report`: the counts on the terminal, `report.json` and the card
"""
