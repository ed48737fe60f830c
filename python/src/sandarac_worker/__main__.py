"""``python -m sandarac_worker`` is ``sandarac-worker``."""

import sys

from .command import main

sys.exit(main())
