"""Comparison of gormapy with other MPIs, for who works in this tree: ``make compare``."""
