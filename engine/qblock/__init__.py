"""qblock: an SQL-backed anonymization engine."""

__version__ = "0.1.0"
