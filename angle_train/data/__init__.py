"""Sources of labelled pairs in, checked pairs on one scale out, with a use for each in a run.

In reading order:
`sources`: rows from files, dataset directories and the Hugging Face hub, each with its place; which columns
    hold their texts and score.
`triplets`: rows of anchors, positives and negatives as rows of scored pairs.
`scores`: what scores mean: their scale, or the classes of inference that they are.
`pairs`: rows as scored pairs, with weights and what supervised them.
`kinds`: the kind of their labels.
`leaks`: what pairs that measure share with pairs that were learned from.
`hold_out`: pairs held out of training, and parts that take turns.
`splits`: the pairs of a run: training, dev and test.
`search_set`: documents, queries, and which documents each query should find.
`judged`: pairs that a language model graded, a few of which people graded too.
`guards`: pairs that say what must not get worse; `general/guard.jsonl` has those of general text.
`teacher`: pairs and texts without labels, for another model to score.
`vectors`: texts with vectors that something else computed.
`keep`: texts that are to stay as similar to each other as the backbone has them.
`forms`: pairs as tuples, or as a `DatasetDict`, in the forms that the others read.
"""
