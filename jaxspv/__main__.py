"""`python -m jaxspv` is `jaxspv`."""

import sys

try:
    from .cli._jaxspv_command import main
except ModuleNotFoundError:  # in a wheel it stands at the top alone
    from _jaxspv_command import main

sys.exit(main())
