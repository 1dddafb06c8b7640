"""The demo: invented census-like people, their hierarchies and a release spec, in a folder, in PostgreSQL or
on Spark; and the package's examples."""
