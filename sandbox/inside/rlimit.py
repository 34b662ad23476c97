"""Limits of the kernel that can only become lower."""

from __future__ import annotations

import resource


def lower_limit(kind: int, limit: int) -> None:
    """Sets a limit that cannot be raised again; where the machine's own is lower, that one stays."""
    hard = resource.getrlimit(kind)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))
