"""The version of the program, as the ledger records it."""

__version__ = "0.1.0"
