"""What is being done, in one line of a terminal that is gone when it is done."""

from muhat.progress import progress

__all__ = ["progress"]
