"""The errors that end a command, each with its exit status."""

from __future__ import annotations


class QblockError(Exception):
    """A fault outside of qblock: connection, database, disk. Exit status 1."""

    exit_status = 1


class InputError(QblockError):
    """The spec, a hierarchy, the data or the command line is wrong. Exit status 2."""

    exit_status = 2


class ParameterError(InputError):
    """A model's parameter is out of range; the message names the valid range."""


class Refused(QblockError):
    """Nothing safe can be published, or a check failed. Exit status 3."""

    exit_status = 3


class Busy(QblockError):
    """Another run holds the release's lock, or another process holds the file. Exit status 4."""

    exit_status = 4
