"""What a run or an evaluation found, for people: report.json, report.html, the card, the terminal's table.

In: the outcome of training (`result.Trained`) or of an evaluation (`evaluation.suite.Evaluation`).
Out: files and text. Read in this order:

- `text`: results as a plain table, the line for each set, advice, the command that repeats a run.
- `right_shares`: how good a model is in words for everybody: of 100 comparisons so many come out right.
- `next_step`: what to do after a run, with the work that it takes.
- `verdict`: what a run comes to: one object that all reports, the terminal and the exit code read.
- `result`: the outcome of training as data; report.json.
- `card`: the model's card; `card.md` has the words.
- `figures`: drawings as SVG text, and the bands of gold scores that they show.
- `page`: rows and figures for the page of a run; `page.html` has the words, `style.css` the colours.
- `search_look`: of a search, the queries that gained and lost most, with what was found and missed.
- `provisional`: what a run found so far, of the same parts; replaced by the page of the run.
- `eval_page`: the page of an evaluation, of the same parts.
- `hub`: a tuned model and its card to the hub.
"""
