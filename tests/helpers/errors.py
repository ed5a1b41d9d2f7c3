"""Tables of errors as tests: each call raises an error that names the parameter, the value and the remedy."""

import pytest


def refused(table):
    """The test of a subpackage's table, of rows (what, call, error, message)."""

    @pytest.mark.parametrize(("call", "error", "message"), [row[1:] for row in table], ids=[row[0] for row in table])
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test
