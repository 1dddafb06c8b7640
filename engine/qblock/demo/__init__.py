"""The demo: invented census-like people, their hierarchies and a release spec, in a folder or in PostgreSQL; and the
package's examples."""
