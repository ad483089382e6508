"""How a step is called and stopped: as a command in a terminal, or as a function in a notebook.

In: a config, a dataclass whose fields are options. Out: the command of typer, or the config that was given.
Every room may use it; of ours it uses the shared modules alone.

In reading order:

- `options`: the options of a config as those of a command, checked by pydantic
- `checks`: several checks, of which none hides another
- `defaults`: options of commands from a project's `angle.toml`
- `commands`: options given more than once are refused, and those of `angle.toml` called so
- `program`: what both programs share: error lines and exit codes
- `interrupts`: what Ctrl-C, SIGTERM and SIGHUP do
- `notebook`: a command as a function, beside a running event loop
- `rows`: rows in memory as the files that a command reads
- `row_errors`: errors about these rows, in the words of whoever gave them
- `as_html`: rows as a small table for notebooks
"""
