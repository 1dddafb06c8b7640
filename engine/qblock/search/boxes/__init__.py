"""Multidimensional recoding: a map that gives every block labels of levels of its own."""
