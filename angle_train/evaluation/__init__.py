"""How good models are, how sure that is, and whether one is better than another.

In: models, and tasks: those of the papers by name, or sets of the user's own scored pairs. Out: an
`Evaluation`, which holds a `Result` for every figure of every model, and the pairs as the models see them.

Read in this order:
`similarity`: texts to embeddings, each once; embeddings to cosines.
`statistics`: figures of n items (Spearman, mean, area under the curve) on any resample of them, and from
    resamples the intervals of a figure and of the difference of two. What chooses weights resamples by
    source text instead, see `train.choosing`.
`task`: what a task is, where its rows are, and all by name; the tasks themselves are in the folder `tasks`.
`compare`: what cosines of scored pairs are worth; what models did on one task, compared; the `Result`; the
    user's own pairs as a task.
`suite`: models on tasks, from names to the `Evaluation`.
"""
