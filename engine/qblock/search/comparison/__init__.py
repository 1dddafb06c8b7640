"""Definitions of a requirement side by side on the same data."""
