"""Tables of errors as tests: each call raises an error that names the parameter, the value and the remedy."""

import pytest


def refused(table):
    """The test of a table of rows (what, call, error, message), or (what, call, message) for a ValueError."""
    rows = [row if len(row) == 4 else (*row[:2], ValueError, row[2]) for row in table]

    @pytest.mark.parametrize(("call", "error", "message"), [row[1:] for row in rows], ids=[row[0] for row in rows])
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test
