"""The evaluation tasks of the papers and of `angle-data`'s own data; `evaluation.task` has them by name.

In: rows from the user's folder or from the hub, and a function that embeds texts. Out: an `Outcome`, the
figures of one model on one task.

Read in this order:
`pairs`: pairs that are graded, or belong together or not, with thresholds found on other pairs.
`transfer`: classes of texts or pairs by classifiers on frozen embeddings.
`retrieval`: captions of a picture among all captions, duplicates of a report among all reports.
"""
