"""Training: arguments, trainer, watching, checkpoints, processes, choosing."""
