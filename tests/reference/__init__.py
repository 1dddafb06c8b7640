"""A second implementation of the specification, over raw rows, to hold the engine against.

Slow and obvious on purpose: plain Python over lists of dicts, Fractions, and 80-digit decimals where logarithms are
involved. It imports nothing of qblock. Definitions are searched by brute force where the engine uses a closed form.
"""
