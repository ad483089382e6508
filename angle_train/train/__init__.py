"""A model, training pairs and dev pairs in, a trained model and its learning curve out.

In reading order:
`trainer`: one training run on the Sentence Transformers trainer.
`arguments`: a recipe's `[training]` section as the trainer's settings, among them that the checkpoint with
    the best dev score is kept; precision, trackers.
`watch`: the learning curve, early stopping, interruption, and running out of memory or disk.
`checkpoints`: the output directory of a run: new, interrupted or finished; its checkpoints.
`choosing`: graded pairs held out in turn to choose the number of steps; mixing in the backbone.
`processes`: several processes in one run.

Whether the tuned weights are saved at all, or the backbone, is decided in `report.result.make_report`.
"""
