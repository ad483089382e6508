"""How alike texts are, by the tokens that they share: one definition for `ensemble`, `mine` and `gis`.

No text is compared with all others: which texts are like it is found through its rarest tokens.

- `near`: what the tokens of a text are; the texts that are all but the same, exactly
- `ranking`: the other texts in order, the most similar first, by the weights of the tokens that they share
- `bm25`: the texts that answer a query best by its words: what a search without a model finds
"""
