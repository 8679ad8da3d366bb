"""The state that a kernel's loop carries, with fields by name."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

from ..simt.primitives import Simt
from ..simt.typed import Operand


@dataclasses.dataclass
class Carry:
    """Base of such states: dataclasses whose fields are kernel values, equal in all CTAs, or tuples
    of values."""

    @classmethod
    def of(cls, **named: Operand) -> Self:
        """The named fields as given, all others 0."""
        return cls(**{field.name: 0 for field in dataclasses.fields(cls)} | named)

    def values(self) -> tuple[Any, ...]:
        """The values of all fields in their order."""
        found: list[Any] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            found += value if isinstance(value, tuple) else (value,)
        return tuple(found)

    def like(self, *values: Any) -> Self:
        """A state of these values, with tuples where this one has them."""
        left, fields = iter(values), []
        for field in dataclasses.fields(self):
            old = getattr(self, field.name)
            fields.append(tuple(next(left) for _ in old) if isinstance(old, tuple) else next(left))
        return type(self)(*fields)

    def after(self, k: Simt, when: Operand, action: Callable[[Self], object]) -> Self:
        """The state after `action` changed a copy of it where `when` holds, else as it was."""

        def run():
            new = self.like(*self.values())
            action(new)
            return new.values()

        return self.like(*k.if_(when, run, *self.values()))

    def loop(
        self, k: Simt, going: Callable[[Self], Operand], step: Callable[[Self], Self | None]
    ) -> Self:
        """The state after `while going(s): step(s)`; a step changes it or returns another."""

        def body(*carry):
            s = self.like(*carry)
            return (step(s) or s).values()

        return self.like(*k.while_(lambda *c: going(self.like(*c)), body, *self.values()))
