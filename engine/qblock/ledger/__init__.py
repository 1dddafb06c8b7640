"""The evidence of every release: what was published, when, from what with which guarantees, as a chain of events."""
