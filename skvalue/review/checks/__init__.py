"""What may be wrong with a table: checks of its labels, rows, columns and entries."""

from ._check_table import check_table
from ._finding import Finding

__all__ = ["Finding", "check_table"]
