"""``python -m muhat`` is the command ``muhat``."""

import sys

from muhat.command_line import main

sys.exit(main())
