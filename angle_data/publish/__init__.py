"""Labelled pairs and what their maker says about them in; a data set folder with its card out.

- `dataset`: writes the parquet files and the card
- `folder`: puts a finished folder in the place of the old one
- `card`: the card's text and statistics
"""
