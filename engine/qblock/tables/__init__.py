"""Functions on tables that a program holds or names (data frames, Arrow, files, a database): audited, anonymized,
profiled. The words are those of a spec, and so are the checks."""
