"""The difference of two models, in words, in the terminal and as a page."""
