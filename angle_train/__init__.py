"""Labelled pairs in, fine-tuned embedding model and report out. Importing this package loads nothing heavy.

In reading order:
`cli`: the commands of `angle-train`, their options and what they print.
`recipe`: everything that decides a run apart from data and backbone, validated; TOML files and overrides.
`run`: one training run, from pairs to report.
`grid`: a search for the recipe that ranks dev pairs best.
`encode`: the texts of a file as embeddings in a file.

Then the rooms: `data` (pairs), `model` (backbones), `objective` (the loss and its batches), `train` (one
training), `evaluation` (similarity, intervals, tasks) and `report` (what a run found: data, text and page).
"""
