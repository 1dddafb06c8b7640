"""The report of a release: what readers see, what is promised, and what attacks find, in one file."""

from qblock.report.read import read_report as read_report
from qblock.report.render import FORMATS as FORMATS
from qblock.report.render import Format as Format
from qblock.report.render import Report as Report
from qblock.report.render import rendered as rendered
