"""Engines: the databases that a source is in. Each is a folder here: an entry, and an adapter of what differs."""
