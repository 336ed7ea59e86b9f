"""A test that always passes."""

import pytest


@pytest.mark.exercise("1.3", points=1000, host=True)
def test_numbers(lab):
    """All is well."""
