"""A model, training pairs and dev pairs in, a trained model and its learning curve out.

In reading order:
`purpose`: which recipe a run takes.
`presets`: objective, learning rate and length that the kind of labels gives a recipe which states none.
`trainer`: one training run on the Sentence Transformers trainer.
`arguments`: a recipe's `[training]` section as the trainer's settings, among them that the last checkpoint
    and the one with the best dev score stay on disk; precision, trackers.
`teacher`: pairs without labels that another model scores, to train on.
`frozen`: layers that stay as they are, computed once for each text.
`distillation`: what a fresh backbone learns from the tuned model: its embeddings of the domain's texts.
`passed`: a user's own training arguments: what passes, and what is refused.
`watch`: the learning curve, a first look, early stopping, interruption, and running out of memory or disk.
`run_directory`: the output directory of a run: new, interrupted or finished; its checkpoints.
`choosing`: the one rule by which a checkpoint or the backbone itself is chosen: the simplest, unless held-out
    pairs surely say otherwise.
`merging`: mixing the backbone into the tuned weights.
`guards`: what tuned weights lose elsewhere, and how much of the backbone makes up for it.
`folds`: graded pairs held out in turn, where there are no dev pairs.
`processes`: several processes in one run.
"""
