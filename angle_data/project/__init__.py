"""A file of texts in, a folder that knows the rest out: from three answers to a graded data set, by steps.

A step is a long command with options from the folder's `angle.toml` (see `calling.defaults`), and can be
repeated by hand: each says the command that it stands for. All steps go on where they were stopped.

In reading order:

- `command`: the commands `angle-data start`, `pilot`, `run` and `status`
- `start`: three answers to an `angle.toml`
- `steps`: the sections of `angle.toml` as long commands, in their order
- `checking`: whether all of them can be taken, before the first request
- `project`: a folder whose steps can be taken, from a terminal or in Python
- `status`: what a folder has, what was spent, what comes next
"""
