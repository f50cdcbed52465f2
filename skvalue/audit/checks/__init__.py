"""What may be wrong with a table: checks of its labels, rows, columns and entries."""

from ._check_table import LARGEST, WIDEST, check_table
from ._finding import SEVERITIES, Finding, rows_shown
from ._labels import find_spellings
