"""Labelled pairs and what their maker says about them in; a data set folder with its card out.

- `dataset`: writes the parquet files and the card, in place of those of an earlier build
- `card`: the card's text and statistics
"""
