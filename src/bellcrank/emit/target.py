"""What a target is: one way from a graph to something that can be called.

    graphs --choose--> graph --source--> text --compile--> (facts, code) --load--> Kernel
                                          key, facts --recall--> code

The stages that all have in common (build/stages.py) know nothing of any of them. A target says what decides its code
beside the graph (`key`), and what of it is kept on disk: facts, which are JSON, and code, which `recall` finds again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bellcrank.parameters import Parameters

if TYPE_CHECKING:
    from bellcrank.graph import Graph

DTYPES = ("float64", "float32")
Shape = tuple[int, ...]
By = TypeVar("By")
# Of the keywords of a call: the kernel that understands them, and what is left for it; None: they say nothing of it.
Extend = Callable[[Mapping[str, Any]], tuple[Any, dict[str, Any]] | None]


@dataclass(frozen=True)
class Signature:
    """What a kernel takes and gives, for one state."""

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    dtype: str = "float64"
    rows_per_thread: int = 1024  # fewer are done before another thread has woken up
    columns: Mapping[str, Sequence[str]] | None = None  # names of an input's elements, for messages
    call: str = ""  # "(q, v, *, out=None)": how it is called, where that is more than its inputs
    doc: str = ""  # what help() says of it


@dataclass(frozen=True, eq=False)
class About:
    """What a kernel knows of itself beside its code. graph and source are made when somebody asks."""

    signature: Signature
    graph: Callable[[], Graph]
    source: Callable[[], str]
    method: str = ""
    cached: bool = False
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None  # a function and arguments that make it again
    extend: Extend | None = None
    parameters: Parameters = field(default_factory=Parameters)  # what the input `p` is


class Target(Protocol):
    """One computer, one type of numbers, one way to use it."""

    @property
    def dtype(self) -> str: ...

    @property
    def key(self) -> tuple[str, ...]:
        """All that decides the code beside the graph."""
        ...

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Of graphs that compute the same, by different methods, the one that will be fastest here."""
        ...

    def source(self, graph: Graph) -> str:
        """Text for the compiler, and for people who want to look."""
        ...

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """Facts that JSON can hold, code, and whether that was there already."""
        ...

    def recall(self, facts: Mapping[str, Any]) -> Any:
        """The code that belongs to facts of an earlier process; None where it is gone."""
        ...

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Any:
        """The Kernel of code that `compile` gave, now or in an earlier process."""
        ...
