"""What searches and runs of the job take, in units of one GROUP BY of the same table (docs/performance.md).

Times are medians of three runs; of whole maps, growth and the weekly job of one, of the tiny table of eleven. They
begin when qblock is imported, except for a whole process. The stage `opening` is everything before the search (the
scan, hierarchies and codes), `metrics` the choice among minimal nodes and the metrics of the chosen one; what is spent
in the session, by method, is a part of all three. CPU seconds are those of all threads, with those of a PostgreSQL
server on the same machine. The digest is a SHA-256, of which 12 digits are printed.

A question that the installed version cannot be asked is reported as not supported; one that takes longer than
`--timeout` seconds (600), or more memory than `--memory` MB, as not finished. Searches with `--rows` find other nodes
than those on whole tables. Of six CPU seconds of `retail-entropy6-process` the check `skew` takes one.
"""
