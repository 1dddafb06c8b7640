"""schedule: what runs the release job every week or day. It is printed, and nothing is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from qblock.cli.output import SpecPath, Unwrapped, display, load_release
from qblock.errors import InputError
from qblock.resources import directory

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
AT = re.compile(r"(?:(?P<day>[a-z]{3}) )?(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])")
ADDRESS = re.compile(r"[A-Za-z0-9.!#$&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+")
"""Without a percent sign, which ends a line of cron."""


@dataclass(frozen=True)
class Job:
    """When and where a release runs. day: 0 is Monday, None every day."""

    release: str
    program: str
    spec: str
    wrapper: str
    day: int | None = 0
    hour: int = 3
    minute: int = 15
    mail: str | None = None

    @property
    def how_often(self) -> str:
        """In words, with the time."""
        when = "day" if self.day is None else DAYS[self.day].capitalize()
        return f"every {when} at {self.hour:02}:{self.minute:02}"


def crontab(job: Job) -> str:
    """Lines for `crontab -e`. Cron mails what the wrapper prints, which is what a person must know."""
    # Cron ends a command at a percent sign.
    program, command = (
        shlex.join(words).replace("%", r"\%") for words in ([job.program], ["/bin/sh", job.wrapper, job.spec])
    )
    day = "*" if job.day is None else str(job.day + 1)
    lines = [
        f"# The release {job.release}, {job.how_often}. A URL that the spec takes from the environment is in",
        "# ~/.config/qblock/environment, of mode 0600: export WAREHOUSE_URL=postgresql://job@warehouse/clinic",
        *([f"MAILTO={job.mail}"] if job.mail else []),
        f"{job.minute} {job.hour} * * {day}  "
        '[ ! -r "$HOME/.config/qblock/environment" ] || . "$HOME/.config/qblock/environment"; '
        f'QBLOCK={program} {command} "$HOME/.local/state/qblock/{job.release}"',
    ]
    return "\n".join(lines) + "\n"


def systemd(job: Job) -> str:
    """A service and a timer."""
    if job.mail is not None:
        raise InputError("--mail: systemd sends no mail; write --with cron, or name a unit of yours in OnFailure=")
    result = f"/var/lib/qblock/{job.release}.json"
    words = [job.program, "release", job.spec, "--wait", "600", "--log-format", "json", "--result", result]
    day = "*-*-*" if job.day is None else DAYS[job.day].capitalize()
    name = f"qblock-{job.release}"
    writable = _unit_text(str(Path(job.spec).parent))
    return f"""\
# /etc/systemd/system/{name}.service
[Unit]
Description=Anonymized release {job.release}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=2h
StartLimitBurst=4

[Service]
Type=oneshot
# A user of its own, to whom the spec and the private folder belong
User=qblock
# WAREHOUSE_URL=postgresql://job@warehouse/clinic, in a file of mode 0600
EnvironmentFile=-/etc/qblock/environment
ExecStart={" ".join(map(_unit_text, words))}
# 4: another run is doing it
SuccessExitStatus=4
# A fault outside (1) is tried again; a spec to mend (2) and a refusal (3) need a person
Restart=on-failure
RestartSec=10min
RestartPreventExitStatus=2 3
TimeoutStartSec=6h
StateDirectory=qblock
StateDirectoryMode=0700
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ReadWritePaths={writable}

# /etc/systemd/system/{name}.timer
[Unit]
Description=The release {job.release}, {job.how_often}

[Timer]
OnCalendar={day} {job.hour:02}:{job.minute:02}
RandomizedDelaySec=10min
Persistent=yes

[Install]
WantedBy=timers.target

# systemctl daemon-reload && systemctl enable --now {name}.timer
"""


def airflow(job: Job) -> str:
    """A DAG."""
    if job.mail is not None:
        raise InputError("--mail: Airflow notifies by callbacks of its own; write --with cron, or on_failure_callback")
    text = (directory("examples") / "airflow" / "qblock_release.py").read_text("utf-8")
    day = "*" if job.day is None else str(job.day + 1)
    changes = {
        'os.environ.get("QBLOCK", "qblock")': repr(job.program),
        'os.environ.get("QBLOCK_SPEC", "/etc/qblock/release.yaml")': repr(job.spec),
        '"15 3 * * 1"': f'"{job.minute} {job.hour} * * {day}"',
        "qblock_release()": f"qblock_{job.release}()",
        "import os\n": "",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


KINDS: dict[str, Callable[[Job], str]] = {"cron": crontab, "systemd": systemd, "airflow": airflow}


def _unit_text(word: str) -> str:
    """A word as systemd reads it back: quoted, without specifiers and variables."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[\s\"';\\]", word) else escaped


def _program() -> str:
    """The absolute path of this qblock."""
    beside = Path(sys.executable).with_name("qblock")
    return str(beside) if beside.is_file() else shutil.which("qblock") or "qblock"


def job_of(spec: str, release: str, at: str, daily: bool, mail: str | None) -> Job:
    """The job that the options describe. Raises InputError for a time or an address that cannot be one."""
    match = AT.fullmatch(at.lower())
    day = None if match is None else match["day"]
    if match is None or (day is not None and day not in DAYS):
        raise InputError(f"--at {at}: write a time as 03:15, or a day and a time as 'Mon 03:15'")
    if daily and day is not None:
        raise InputError(f"--at {at}: --daily runs on every day; leave out {match['day']}")
    if mail is not None and not ADDRESS.fullmatch(mail):
        raise InputError(f"--mail {mail}: is no address; write one as data-team@example.org")
    path = Path(os.path.abspath(spec))
    if not str(path).isprintable():
        raise InputError(f"{path}: has characters that no scheduler takes, such as a line break; move the spec")
    return Job(
        release,
        _program(),
        str(path),
        str(directory("examples") / "cron" / "qblock-release"),
        day=None if daily else DAYS.index(day or "mon"),
        hour=int(match["hour"]),
        minute=int(match["minute"]),
        mail=mail,
    )


def schedule(
    spec: SpecPath,
    with_: Annotated[
        str, typer.Option("--with", metavar="NAME", help="What starts the job: cron, systemd or airflow.")
    ] = "cron",
    at: Annotated[str, typer.Option(metavar="TIME", help="When: 'Mon 03:15', or 03:15.")] = "03:15",
    daily: Annotated[bool, typer.Option("--daily", help="Every day, not every week.")] = False,
    mail: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Who is told when the job lags, is refused or fails. With cron."),
    ] = None,
) -> None:
    """Print what runs the release job every week, with paths filled in. Installs nothing."""
    if with_ not in KINDS:
        raise InputError(f"--with {with_}: valid: {', '.join(KINDS)}")
    release = load_release(spec)
    text = KINDS[with_](job_of(spec, release.spec.release, at, daily, mail))
    display(map(Unwrapped, text.splitlines()))
