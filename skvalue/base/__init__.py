"""What every valuer of rows does, once."""

from ._in_sample import BaseInSampleValuer
from ._valuer import BaseValuer

__all__ = ["BaseInSampleValuer", "BaseValuer"]
