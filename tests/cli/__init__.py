"""The command line as a person or a scheduler meets it."""
