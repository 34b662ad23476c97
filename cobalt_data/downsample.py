"""Max-variance down-sampling: of n values keep the m that vary most (PODS, arXiv 2504.13818).

The best subset always consists of the k highest and the m - k lowest values for some k, so one sort and one scan over k
find it exactly, for any n.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def max_variance_subset(values: Sequence[float], m: int) -> list[int]:
    """The positions of `m` values whose variance is the greatest, ascending; all positions where there are at most `m`.

    Of equally good subsets the one with the fewest high values wins, and of equal values those that come first.
    """
    if len(values) <= m:
        return list(range(len(values)))
    order = sorted(range(len(values)), key=lambda position: values[position])
    ascending = [values[position] for position in order]
    sums = [0.0, *accumulate(ascending)]
    squares = [0.0, *accumulate(value * value for value in ascending)]

    def variance(highest: int) -> float:
        lowest = m - highest
        total = sums[lowest] + sums[-1] - sums[len(values) - highest]
        total_of_squares = squares[lowest] + squares[-1] - squares[len(values) - highest]
        return total_of_squares / m - (total / m) ** 2

    highest = max(range(m + 1), key=variance)
    return sorted([*order[: m - highest], *order[len(values) - highest :]])
