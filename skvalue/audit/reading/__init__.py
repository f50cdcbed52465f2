"""Tables from files: their encoding, fields and types, and what is doubtful."""

from ._arrow import ARROW, whole_table
from ._as_public import read_as_public
from ._encoding import decode
from ._fields import check_layout, split
from ._table import Reading, read_table, split_target
