"""Labelled pairs in, the loss of a batch out.

In reading order:
`terms`: the cosine, in-batch and angle objectives as functions of embeddings, in plain torch;
    `not_negatives` says which texts of a batch are no negatives of each other.
`labels`: what the labels of a batch say: positives, neutral pairs, which texts are paraphrases.
`batches`: from pairs to batches: which pairs stand together, each distinct text once, in chunks.
`kept`: texts that are to keep their similarities: what a batch takes of them, and the term that holds them.
`loss`: the weighted sum of the terms, as a loss for the Sentence Transformers trainer, with little memory or
    in several processes.
`angle_loss`: the same objective as a plain loss of Sentence Transformers, for batches of anyone's trainer.
"""
