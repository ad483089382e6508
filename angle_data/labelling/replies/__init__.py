"""A raw reply in, sentences or grades out, with a reason for every dropped part."""
