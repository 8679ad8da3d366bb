"""The table of functions: what each refuses, when it pays, and the frame every call runs in."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import networkx as nx

from .graph import ConvertedGraph

Cost = Literal["linear", "search", "searches"]
FUNCTIONS: dict[str, Callable[..., Any]] = {}
_REFUSALS: dict[str, Callable[..., str | None]] = {}
_COSTS: dict[str, Cost | Callable[..., int]] = {}
FEW = 4  # searches that cost about what the conversion does


def implements(
    *, cost: Cost | Callable[..., int], refuse: Callable[..., str | None] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator entering a function under its name.

    NetworkX refuses the kinds of graphs that a function is not for before it asks a backend.

    Args:
        cost: "linear": NetworkX's own loop, such as one breadth-first search, costs about what the
            conversion does; "search": one that costs more; "searches": one from every node; or
            called with the arguments: from how many.
        refuse: called with the arguments; the reason why they are not supported, or None.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with double_precision():
                return function(*args, **kwargs)

        signature = inspect.signature(function)
        counted = functools.partial(_of_arguments, signature, cost) if callable(cost) else cost
        FUNCTIONS[name], _COSTS[name] = call, counted
        reasons = [r for r in (refuse, _no_attribute(signature)) if r is not None]
        _REFUSALS[name] = functools.partial(_first_reason, signature, reasons)
        return call

    return add


def _of_arguments(signature, f, *args, **kwargs):
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return f(**bound.arguments)


def number_of(G: Any, nodes: Any) -> int:
    """How many nodes `G.nbunch_iter(nodes)` has, at most; an iterator is not used up."""
    if nodes is None or not (nodes in G or hasattr(nodes, "__len__")):
        return len(G)
    return 1 if nodes in G else len(nodes)


def _first_reason(signature, reasons, *args, **kwargs) -> str | None:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        return f"arguments are not those of NetworkX {nx.__version__}: {error}"
    bound.apply_defaults()
    found = (reason(**bound.arguments) for reason in reasons)
    return next((text for text in found if text), None)


def _no_attribute(signature: inspect.Signature) -> Callable[..., str | None]:
    """Refuses a weight that is no name of an attribute."""
    given = signature.parameters.items()
    names = [n for n, p in given if n in ("weight", "distance") and p.default is not p.empty]

    def reason(**arguments: Any) -> str | None:
        for name in names:
            value = arguments[name]
            if callable(value):
                return f"`{name}` is a function: it would be called edge by edge"
            if value is not None and not isinstance(value, str):
                return f"`{name}` is no string"
        return None

    return reason


def null_graph(**arguments: Any) -> str | None:
    """Refuses the graph without nodes, for which releases of NetworkX raise different errors."""
    return "the graph has no nodes" if len(arguments["G"]) == 0 else None


def can_run(name: str, args: tuple, kwargs: dict) -> bool | str:
    """True, or the reason why a call is not supported."""
    return _REFUSALS[name](*args, **kwargs) or True


def should_run(name: str, args: tuple, kwargs: dict) -> bool | str:
    """True, or the reason why NetworkX's own loop is expected to be faster."""
    G = args[0] if args else kwargs["G"]
    if isinstance(G, ConvertedGraph) or is_converted(G):
        return True
    cost, settings = _COSTS[name], configuration()
    count = cost(*args, **kwargs) if callable(cost) else FEW
    if cost == "linear" or count < FEW:
        return "its passes over the edges cost what a conversion does; the graph has none yet"
    least = settings["least_size_for_searches" if cost == "searches" else "least_size"]
    if callable(cost):
        least = max(least * FEW // count, settings["least_size_for_searches"])
    size = len(G)
    for neighbors in itertools.islice(G._adj.values(), least):
        if size >= least:
            break
        size += len(neighbors)
    return True if size >= least else f"the graph is small: {size} nodes and edges, below {least}"


def is_converted(G: Any) -> bool:
    """Whether NetworkX holds a conversion of the graph already."""
    cache = getattr(G, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("jaxspv"))


def configuration() -> dict[str, Any]:
    """`nx.config.backends.jaxspv`, or the defaults where the backend is not installed."""
    from .info import DEFAULTS

    held = nx.config.backends.get("jaxspv", {})
    return {**DEFAULTS, **dict(held)}


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """float64 and int64 in what runs within, as in NetworkX, unless the configuration says no."""
    with jax.enable_x64(bool(configuration()["double_precision"])):
        yield
