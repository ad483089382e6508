"""The requests of a command in, every reply on disk and run.json out: one session of asking.

In reading order:

- `session`: what a command brings, one session of asking from start to verdict, and its forecast
- `collect`: the asking itself: open requests, limits, interrupts
- `journal`: the replies on disk, found again by the key of their request (`annotators.base.request_key`)
- `budget`: token counts, and what the limits still allow
- `runfile`: run.json
"""
