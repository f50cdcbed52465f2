"""Tables from files: their encoding, fields and types, and what is doubtful."""

from ._arrow import ARROW, MAX_ROWS, rows_of_table, whole_table
from ._as_public import read_as_public
from ._encoding import decode
from ._fields import check_layout, split
from ._images import FOR_MODELS, LABEL, SHOWN, is_folder, read_images
from ._other_kinds import (
    EXCEL,
    JSON_LINES,
    as_csv,
    decompressed,
    excel_rows,
    json_records,
    names_of,
    text_of,
)
from ._table import FIRST_ROW, Reading, column_entries, read_table, split_target
