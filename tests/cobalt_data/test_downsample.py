from itertools import combinations
from statistics import pvariance

from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.downsample import max_variance_subset

RATES = st.lists(st.integers(0, 20).map(lambda passed: passed / 20), max_size=9)


@given(RATES, st.integers(1, 6))
def test_no_other_subset_varies_more(rates, m):
    chosen = max_variance_subset(rates, m)
    assert len(set(chosen)) == len(chosen) == min(m, len(rates))
    if len(rates) >= m:
        best = max(pvariance(subset) for subset in combinations(rates, m))
        assert abs(pvariance([rates[position] for position in chosen]) - best) < 1e-12


@given(st.lists(st.floats(0, 1), min_size=17, max_size=60))
def test_it_is_exact_for_more_values_than_the_paper_had(values):
    chosen = [values[position] for position in max_variance_subset(values, 4)]
    ascending = sorted(values)
    best = max(pvariance([*ascending[: 4 - k], *ascending[len(values) - k :]]) for k in range(5))
    assert abs(pvariance(chosen) - best) < 1e-12


@given(RATES, st.integers(1, 6), st.randoms())
def test_the_values_chosen_do_not_depend_on_their_order(rates, m, random):
    shuffled = random.sample(rates, len(rates))
    assert sorted(rates[p] for p in max_variance_subset(rates, m)) == sorted(
        shuffled[p] for p in max_variance_subset(shuffled, m)
    )
