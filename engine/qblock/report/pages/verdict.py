"""The first page of a report: whether a release keeps what it promises, for the person who signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qblock.report.pages.chances import over_versions
from qblock.report.parts import Part, Points, Signature, Table, Text, counted, share
from qblock.results.report import Published, Report
from qblock.results.risk import ThresholdShown

ROLES = {
    "identifying": "identifying",
    "quasi_identifier": "quasi-identifier",
    "sensitive": "sensitive attribute",
    "insensitive": "insensitive",
    "entity": "says who a row is about",
    "groups": "says whose group a row is of",
}
NO_REASON = "no reason is declared"
MEASURED = {
    ("highest", True): "the highest chance of any row is",
    ("highest", False): "the highest chance of any person, over all versions, may be",
    ("mean", True): "the mean chance over this version's rows is",
}


def verdict_page(report: Report) -> Sequence[Part]:
    """Whether the release keeps what it promises, and what it does not promise."""
    shown = report.shown
    known = ", ".join(column.name for column in shown.quasi_identifiers) or "none"
    promises = [f"{of.in_words[:1].upper()}{of.in_words[1:]}." for of in shown.guarantees]
    return (
        *_older(report),
        Text(verdict_text(shown), "verdict" if all(guarantee.holds for guarantee in shown.guarantees) else "failed"),
        Text(
            f"{shown.view} shows {counted(shown.rows, 'row')} in {counted(shown.blocks, 'block')} of rows that read "
            f"the same in {known}. {shown.whose}{_now(shown)} The version was made on {shown.at} (UTC)."
            f"{shown.follows and f' {shown.follows}'}"
        ),
        *_chance(shown),
        *_one_more_fact(shown),
        *_answers(shown),
        Points("What is promised", promises),
        Points("What is not promised", _limits(shown, known)),
        *_taken(report),
        *_roles(shown),
        *_surroundings(shown),
        *signed_for(report),
        Signature(),
    )


def _chance(shown: Published) -> Iterator[Part]:
    """How likely an outsider names the right person, against what is declared acceptable."""
    if not shown.attackers:
        return
    prosecutor = shown.attackers[0]
    of = shown.threshold
    chances = f"at most {share(prosecutor.highest or 0)}, and {share(prosecutor.mean)} on average over the rows"
    said = f"An outsider who knows every quasi-identifier of a person names their row with a chance of {chances}"
    yield Text(" ".join(filter(None, (f"{said} ({shown.counted}).", over_versions(shown)))))
    if of is None:
        yield Text("The spec declares no chance that is acceptable; `report: {threshold: 0.09}` in it would.")
        return
    yield Text(_met(of, prosecutor.share_above or 0), "verdict" if of.met else "failed")


def _met(of: ThresholdShown, above: float) -> str:
    because = f" ({of.because})" if of.because else ""
    declared = f"{MEASURED[of.on, of.of_version]} {of.measured_text}, and {of.text} is declared acceptable{because}"
    if of.met:
        return f"The threshold is met: {declared}."
    rows = f" The chance is above it for {share(above)} of the rows." if of.of_version else ""
    remedy = f" It takes k = {of.least} or more." if of.on == "highest" else ""
    return f"The threshold is not met: {declared}.{rows}{remedy}"


def _one_more_fact(shown: Published) -> Iterator[Part]:
    """What somebody learns who can rule out one value of a person."""
    for of in shown.exposed:
        learned = f"in {of.rows:,} of {shown.rows:,} rows ({share(of.share)})" if of.rows else "in no row"
        yield Text(
            f"Somebody who knows one more fact of a person, that a value of {of.sensitive} is not theirs, may be "
            f"certain of their value {learned}.{' That is more than a tenth.' if of.many else ''}",
            "warned" if of.many else "",
        )


def _answers(shown: Published) -> Iterator[Part]:
    if shown.answers:
        said = [f"{of.risk}: {', '.join(of.models)}{' - ' if of.models else ''}{of.in_words}" for of in shown.answers]
        yield Points("Singling out, linkability and inference, and the guarantees that answer them", said)


def _taken(report: Report) -> Iterator[Part]:
    """What the version takes for granted, in a report for whoever runs the job."""
    taken = None if report.internal is None else report.internal.taken
    if taken is None:
        return
    accepted = [f"{of.in_words}; accepted, because: {of.because or NO_REASON}" for of in taken.findings if of.accepted]
    stood = [f"{of.in_words}; a warning that nobody answered for" for of in taken.findings if not of.accepted]
    nothing = [] if accepted or stood else ["Nothing: no check had a finding when the version was published."]
    yield Points("What the release takes for granted", [*accepted, *stood, *nothing])


def _roles(shown: Published) -> Iterator[Part]:
    if not shown.declared:
        return
    rows = [
        (of.name, ROLES[of.role], of.because or NO_REASON, "yes" if of.published else "left out")
        for of in shown.declared
    ]
    yield Table("Roles of the columns, as the spec declares them", ("column", "role", "why", "published"), rows)
    by = shown.context.declared_by
    who = f"Declared by: {by}." if by else "Nobody is named who declared the roles (`report.declared_by`)."
    yield Text(f"A column that the spec does not name is left out, too. {who}")


def _surroundings(shown: Published) -> Iterator[Part]:
    of = shown.context
    texts = {"purpose": of.purpose, "recipients": of.recipients, "release": of.release, "agreement": of.agreement}
    points = [f"{name}: {text}" for name, text in texts.items() if text is not None]
    points += [f"measure: {control}" for control in of.controls]
    if points:
        yield Points("Declared of the surroundings, and checked by nobody here", points)


def signed_for(report: Report) -> Iterator[Part]:
    """What is signed for: a reader can count the content digest again."""
    shown = report.shown
    if shown.digest is None:
        return
    yield Text(
        f"Signed for: release {shown.release}, version {shown.version}, content digest {shown.digest}"
        + (f", spec digest {report.internal.spec_digest}" if report.internal is not None else "")
        + ". `qblock verify` prints the content digest again."
    )


def _now(shown: Published) -> str:
    if shown.now is None:
        return ""
    return f" By their weights {shown.now} of the rows {'is' if shown.now == 1 else 'are'} of people who are there now."


def _older(report: Report) -> list[Part]:
    """Which version readers see, in a report of one that was asked for."""
    kept = None if report.internal is None else report.internal.kept
    if kept is None:
        return []
    if kept.current == kept.version:
        return [Text(f"Version {kept.version} is the one that readers see.")]
    seen = "no version at all" if kept.current is None else f"version {kept.current}"
    spec = "" if kept.same_spec else " The spec has changed since this version was published by it."
    said = (
        f"Readers see {seen}, not version {kept.version}. This report is of the kept copy of version {kept.version}; "
        "the "
    )
    return [Text(f"{said}internal pages are about the source, the spec and the release as of now.{spec}", "failed")]


def verdict_text(shown: Published) -> str:
    """Whether all guarantees hold, in words."""
    failed = [guarantee.in_words for guarantee in shown.guarantees if not guarantee.holds]
    what = f"Version {shown.version} of {shown.release}"
    if failed:
        return f"{what} does not keep what it promises: {'; '.join(failed)}."
    again = [guarantee for guarantee in shown.guarantees if guarantee.satisfied is not None]
    number = len(shown.guarantees)
    kept = "its guarantee holds" if number == 1 else f"all {number} guarantees hold"
    said = f"{what} keeps what it promises: {kept} in the {counted(shown.rows, 'row')} that it shows."
    if len(again) < number:
        said += (
            f" {number - len(again)} of them cannot be counted again from these rows alone; the job checked those "
            "before it published."
        )
    return said


def _limits(shown: Published, known: str) -> list[str]:
    as_they_are = [column.name for column in shown.columns if column.role == "insensitive"]
    sentences = [
        f"Nothing is promised against somebody who knows more of a person than {known}.",
        "It does not hide who is in the table, nor what a whole group has in common.",
        "This report does not look at several releases of the same people together. The job checks the versions of "
        "one release together, as its spec says.",
    ]
    if as_they_are:
        columns = ", ".join(as_they_are)
        sentences.insert(
            1, f"Nothing is hidden in {columns}: published as in the source, and taken to be known to nobody."
        )
    return sentences
