"""`python -m jaxspv` is `jaxspv`."""

import sys

from .cli.main import main

sys.exit(main())
