"""Faults in what is printed: characters of the source that a terminal obeys, and lines that somebody else wrote."""

from __future__ import annotations

from mutation.mutation import Mutation

PRINTABLE = "tests/cli/test_printable.py"

OUTPUT: tuple[Mutation, ...] = (
    Mutation(
        "output: a stream writes what a terminal obeys",
        "cli/streams.py",
        "return self.write_styled(printable(text, keep=OWN))",
        "return self.write_styled(text)",
        tests=(f"{PRINTABLE}::test_a_terminal_gets_our_styles_and_nothing_of_the_data",),
    ),
    Mutation(
        "output: a name ends a line of an answer",
        "cli/output.py",
        "return super().render_str(printable(text), **options)",
        "return super().render_str(text, **options)",
        tests=(f"{PRINTABLE}::test_a_terminal_gets_our_styles_and_nothing_of_the_data",),
    ),
    Mutation(
        "output: a name ends a line of a message",
        "errors.py",
        'return "\\n".join(printable(str(line)) for line in self.args)',
        'return "\\n".join(str(line) for line in self.args)',
        tests=(f"{PRINTABLE}::test_a_message_has_the_lines_that_it_was_given",),
    ),
    Mutation(
        "output: what nobody sees is written as it is",
        "printable.py",
        'return character.encode("unicode_escape").decode("ascii")',
        "return character",
        tests=(f"{PRINTABLE}::test_every_character_that_nobody_sees_is_written_as_an_escape",),
    ),
    Mutation(
        "output: an error of a driver leaves a step as it is",
        "release/job.py",
        "                    with drivers_translated():\n",
        "                    with suppress():\n",
        tests=(
            "tests/cli/test_database_errors.py::test_an_error_of_a_driver_that_no_statement_has_is_told_as_the_others",
        ),
    ),
    Mutation(
        "output: a result is readable by others where the umask says so",
        "cli/job.py",
        "written_whole(self.path, private=True)",
        "written_whole(self.path, private=False)",
        tests=("tests/cli/test_result_file.py::test_a_result_is_for_its_owner_alone",),
    ),
    Mutation(
        "output: a report on what nobody has published is readable by others",
        "cli/evidence.py",
        "reported.internal is not None or reported.version is None",
        "reported.internal is not None and reported.version is None",
        tests=("tests/cli/test_report.py::test_a_report_that_is_not_for_readers_is_for_its_owner_alone",),
    ),
)
