"""`python -m jaxspv` is `jaxspv`."""

import sys

from .cli import main

sys.exit(main())
