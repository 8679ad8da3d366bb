"""`python -m jaxspv` is `jaxspv`."""

import sys

from .cli._jaxspv_command import main

sys.exit(main())
