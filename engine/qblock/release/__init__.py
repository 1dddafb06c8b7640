"""Releases: the scheduled job, and the ledger that is its evidence."""
