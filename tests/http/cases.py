"""Cases of parametrised tests."""

import pytest


def numbers(*cases):
    """Cases that take one road through threads and differ in their numbers: tsan has the first."""
    first, *others = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*first),
        *(pytest.param(*case, marks=pytest.mark.no_race) for case in others),
    ]
