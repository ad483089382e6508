"""Sources of labelled pairs in, checked pairs on one scale out, with a use for each in a run.

In reading order:
`sources`: rows from files, dataset directories and the Hugging Face hub, each with its place.
`columns`: which columns of a row hold its texts, its score and its class, for all readers.
`pairs`: rows as scored pairs: triplets, classes of inference, score scales, weights, supervision.
`kinds`: the kind of their labels, and the objective, learning rate and length that a recipe takes for it.
`splits`: the pairs of a run: training, dev, test, and those that are to keep the backbone's similarity; what
    they share; pairs held out, and parts that take turns.
"""
