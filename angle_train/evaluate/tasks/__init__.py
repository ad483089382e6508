"""The evaluation tasks of the papers and of `angle-data`'s own data; `evaluate.task` has them by name.

In: rows from the user's folder or from the hub, and a function that embeds texts. Out: an `Outcome`, the
figures of one model on one task.

Read in this order:
`sources`: rows from a folder or the hub; texts, classes and numbers in them by their usual names.
`sts`: graded pairs, Spearman's correlation.
`pairs`: pairs that belong together or not, thresholds found on other pairs.
`transfer`: classes of texts or pairs by classifiers on frozen embeddings; protocols in `logistic`.
`captions`: do the captions nearest to a caption describe the same picture?
`duplicates`: duplicates of a report searched among all reports.
"""
