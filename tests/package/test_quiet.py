"""Warnings that are ignored in several threads at once."""

from __future__ import annotations

import threading
import warnings

import pytest

from maxmargin._quiet import quiet


def test_threads_that_leave_in_the_order_of_their_coming():
    """The second one still ignores warnings when the first has left; afterwards the filters are those of before."""
    before = list(warnings.filters)
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    raised: list[Warning] = []

    def first() -> None:
        with quiet(UserWarning):
            first_in.set()
            second_in.wait()
        first_out.set()

    def second() -> None:
        first_in.wait()
        with quiet(UserWarning):
            second_in.set()
            first_out.wait()
            try:
                warnings.warn("nobody should see this", UserWarning, stacklevel=1)
            except UserWarning as error:  # warnings are errors in tests
                raised.append(error)

    threads = [threading.Thread(target=one) for one in (first, second)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert raised == []
    assert warnings.filters == before


def test_only_what_is_named_is_ignored():
    with quiet(message="of this kind"):
        warnings.warn("of this kind", UserWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="of another"):
            warnings.warn("of another", UserWarning, stacklevel=1)
