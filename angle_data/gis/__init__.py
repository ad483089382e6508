"""GitHub in, labelled pairs of duplicate issues out.

In: a list of repositories, or archived event dumps. Out: a data set of pairs with the evidence for each.

- `command`: the commands `angle-data gis`, `gis explain` and `gis rehydrate`
- `collect`: a crawl step by step: lists, has read what was said, looks up what is named there
- `crawl/`: GitHub, or an archive, to `crawl.sqlite`, resumable
- `comments/`: which duplicates a comment states
- `ask/`: doubtful comments to an annotator
- `build/`: `crawl.sqlite` to a data set
- `rehydrate`: fetches the texts of a data set of ids again
"""
