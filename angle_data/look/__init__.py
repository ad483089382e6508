"""A run or a data set in; what is in it to look at, or pairs to grade by hand, out.

In reading order:

- `config`: the options of both commands
- `command`: the commands `angle-data show` and `angle-data grade`
- `read`: rows of any run, ensemble, data set or file as items, and a sample spread over their kinds
- `show`: counts and a sample on the terminal, as JSON, and on the page `show.html`; fills a page
- `grade`: pairs over the range of scores for people to grade, on the page `grade.html` or in a CSV
- `argilla`: such pairs as records for Argilla, and the grades that people gave there
- `serve`: that page from a small server on this machine, which saves every grade
- `agreement`: how far two people agree who graded the same pairs
- `verdict`: a random sample of labelled pairs on the same page, and the error rate that verdicts give
"""
