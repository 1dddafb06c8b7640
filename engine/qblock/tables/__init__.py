"""Tables that a program holds or names (data frames, Arrow, files, a database): audited, profiled, anonymized."""
