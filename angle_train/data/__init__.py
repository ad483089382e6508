"""Sources of labelled pairs in, checked pairs on one scale out, with a use for each in a run.

In reading order:
`sources`: rows from files, dataset directories and the Hugging Face hub, each with its place.
`pairs`: rows as scored pairs: which columns hold what (tables at its top), triplets, score scales, weights.
`kinds`: the kind of their labels, and the objective, learning rate and length that a recipe takes for it.
`leaks`: pairs and texts that two sets share, and pairs left out for it.
`splits`: the pairs of a run: training, dev, test; pairs held out, and parts that take turns.
"""
