"""The message on stderr when an eager call compiles for more than a second."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax

SECONDS = 1.0


class _Teller:
    """Tells once a program: from the start of its trace until JAX says that it is compiled."""

    def __init__(self):
        self.on, self.listens = True, False
        self.timer: threading.Timer | None = None

    @contextlib.contextmanager
    def tracing(self, name: str) -> Iterator[None]:
        """Around what is traced for an eager program."""
        if not (self.on and somebody_reads()):
            yield
            return
        if not self.listens:
            jax.monitoring.register_event_duration_secs_listener(self._listen)
            self.listens = True
        self.stop()
        self.timer = threading.Timer(SECONDS, self.tell, (name,))
        self.timer.daemon = True
        self.timer.start()
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Nothing more to tell."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def tell(self, name: str) -> None:
        """The line."""
        kept = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
        more = "" if kept else "; jaxspv.enable_compilation_cache() keeps programs on disk"
        print(f"jaxspv: compiling {name}, once for operands of these sizes{more}", file=sys.stderr)

    def _listen(self, event: str, duration_secs: float, **_: Any) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            self.stop()


TELLER = _Teller()


def somebody_reads() -> bool:
    """Whether stderr is a terminal or belongs to a notebook: no pipe, no file, no test."""
    if "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel"):
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # none, or closed
        return False


def tell_compiling(on: bool) -> bool:
    """Whether eager calls that compile for more than a second say so on stderr; at first they do.

    One line a program, in a terminal or a notebook only; never where stderr is a pipe or a file.

    Args:
        on: whether they shall.

    Returns:
        What it was before.

    >>> import jaxspv as jsp
    >>> jsp.tell_compiling(False)
    True
    >>> jsp.tell_compiling(True)
    False
    """
    before, TELLER.on = TELLER.on, bool(on)
    return before
