"""The requests of a command in, every reply on disk and run.json out: one session of asking.

In reading order:

- `job`: what a command brings: its requests, and how its files follow from the replies
- `session`: one session of asking from start to verdict
- `collect`: the asking itself: open requests, limits, interrupts
- `useless`: when an annotator gives nothing of use any more
- `journal`: the replies on disk, found again by the key of their request (`annotators.base.request_key`)
- `budget`: token counts, and what the limits still allow
- `runfile`: run.json
- `forecast`: what a session would ask and cost, for --dry-run
"""
