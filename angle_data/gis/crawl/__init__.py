"""GitHub, or an archive of its events, in; the crawl store out: one SQLite file that any stop leaves usable.

In reading order:
`selection`: which repositories, days and signals count; the list of repositories.
`crawl`: the steps of a crawl of the list, and its summary.
`listings`: one repository, page by page: issues with events and comments over GraphQL (`read_threads`), or
    without a token over REST (`read_listing`).
`queries`: what is asked of GraphQL.
`lookups`: single issues and former names, to which statements lead and which no listing gave.
`rows`: the records of the store, and how GitHub's JSON becomes them.
`store`: the SQLite file, and the round under way.
`github`: one connection with its budgets, waits and retries.
`dump_files`, `dump_events`, `archive`: event dumps instead of the API: their lines, what a line says, and
    the reading of them all.
`ledger`: everything that was asked for, and what became of it.
`forecast`: about how many requests a crawl will take.
"""
