"""The state that a kernel's loop carries, with fields by name."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

from ..simt.primitives import Simt
from ..simt.typed import Operand


@dataclasses.dataclass
class Carry:
    """Base of such states: dataclasses whose fields are kernel values, equal in all CTAs."""

    @classmethod
    def of(cls, **named: Operand) -> Self:
        """The named fields as given, all others 0."""
        return cls(**{field.name: 0 for field in dataclasses.fields(cls)} | named)

    def values(self) -> tuple[Any, ...]:
        """The fields in their order."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def after(self, k: Simt, when: Operand, action: Callable[[Self], object]) -> Self:
        """The state after `action` changed a copy of it where `when` holds, else as it was."""

        def run():
            new = type(self)(*self.values())
            action(new)
            return new.values()

        return type(self)(*k.if_(when, run, *self.values()))

    def loop(
        self, k: Simt, going: Callable[[Self], Operand], step: Callable[[Self], Self | None]
    ) -> Self:
        """The state after `while going(s): step(s)`; a step changes it or returns another."""

        def body(*carry):
            s = type(self)(*carry)
            return (step(s) or s).values()

        return type(self)(*k.while_(lambda *c: going(type(self)(*c)), body, *self.values()))
