"""A first look at a table: what its columns are, which roles they may have, and a spec to start from."""
