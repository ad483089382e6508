"""Labelled pairs and what their maker says about them in; a data set folder with its card out.

- `dataset`: writes any rows as parquet files with a card; tables and front matter of cards
- `folder`: puts a finished folder in the place of the old one
- `card`: writes labelled pairs, with a card that has their statistics
"""
