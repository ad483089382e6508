"""Labelled pairs: sources, checks, scales, splits and leaks."""
