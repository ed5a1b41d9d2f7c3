"""``python -m muhat`` is the command ``muhat``."""

import sys

from muhat.apps.cli.command_line import main

sys.exit(main())
