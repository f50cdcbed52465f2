"""Tables: how they are read, checked, audited and corrected."""

from ._audit_table import audit_table
from ._corrections import (
    Correction,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
)
from ._read import Reading, read_table
from ._report import AuditReport
from .checks import Finding, check_table

__all__ = [
    "AuditReport",
    "Correction",
    "Finding",
    "Reading",
    "audit_table",
    "check_table",
    "corrections_of",
    "corrections_to_csv",
    "fix_table",
    "read_corrections",
    "read_table",
]
