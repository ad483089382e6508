"""How good models are, how sure that is, and whether one is better than another.

In: models, and tasks: some by name, or the user's own scored pairs and searches. Out: an `Evaluation`, which
holds a `Result` for every figure of every model, and the pairs and searches as the models see them.

Read in this order:
`known`: embeddings by text, for as long as a model's weights stay what they are.
`similarity`: texts to embeddings, each once; embeddings to cosines.
`statistics`: figures of n items (Spearman, mean, area under the curve) on any resample of them, and from
    resamples the intervals of a figure and of the difference of two. What chooses weights resamples by
    source text instead, see `training.choosing`.
`sharing`: how much wider intervals are where pairs share texts.
`judged`: few grades by people and many by a language model, to figures that are surer and no more biased.
`search`: documents for queries, exactly and in bounded memory; nDCG, MRR and recall of what is found.
`dev_sets`: what chooses weights, pairs and searches alike: a column of figures by item, and their mean.
`power`: how often so many graded pairs find a gain, before anything is trained.
`compare`: what cosines of scored pairs are worth; what models did on one task, compared; the `Result` and the
    `Evaluation`.
`task`: what a task is, where its rows are, and all by name.
`sts`: the tasks of graded pairs: SemEval STS, STS Benchmark, SICK.
`duplicates`: the task of finding a report's duplicates among all reports.
`seeds`: models of one training with several seeds, as mean and standard deviation.
`suite`: the user's own pairs as a task; models on tasks, from names to the `Evaluation`.

The other tasks of the papers are in `benchmarks/papers`.
"""
