"""Tables: how they are read, checked, audited and corrected."""

from ._audit_table import audit_table
from ._corrections import (
    Correction,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
)
from .checks import Finding, check_table
from .reading import Reading, read_table
from .report import AuditReport

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
