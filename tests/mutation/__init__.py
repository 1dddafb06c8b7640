"""Deliberate faults in a copy of the engine, and the tests that must notice each of them."""
