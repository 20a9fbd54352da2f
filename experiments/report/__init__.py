"""Reports of a results document: a table on the terminal, and an HTML page with plots."""

from experiments.report.page import write_report
from experiments.report.terminal import print_table

__all__ = ["print_table", "write_report"]
