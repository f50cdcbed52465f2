"""The report of an audit: what it holds, its page, and verdicts that come back."""

from ._report import AuditReport
