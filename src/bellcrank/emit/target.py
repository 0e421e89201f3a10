"""Protocol of a target: one way from a graph to a callable kernel.

    graphs --choose--> graph --source--> text --compile--> (facts, code) --load--> Kernel
                                          key, facts --recall--> code

The stages that all targets share (build/compilation.py) do not depend on any of them. A target defines what decides its
code beside the graph (`key`), and what is kept on disk: facts, which are JSON, and code, which `recall` finds again.
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
# From the keywords of a call: the kernel that accepts them, and the remaining keywords; None if no other kernel does.
Extend = Callable[[Mapping[str, Any]], tuple[Any, dict[str, Any]] | None]


@dataclass(frozen=True)
class Signature:
    """Names, shapes and types of the inputs and outputs of a kernel, for one state."""

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    dtype: str = "float64"
    rows_per_thread: int = 1024  # fewer rows are done before another thread has woken up
    columns: Mapping[str, Sequence[str]] | None = None  # names of an input's elements, for messages
    call: str = ""  # signature, e.g. "(q, v, *, out=None)", if it is more than the inputs
    doc: str = ""  # text for help()


@dataclass(frozen=True, eq=False)
class About:
    """Description of a kernel beside its code; graph and source are made on demand."""

    signature: Signature
    graph: Callable[[], Graph]
    source: Callable[[], str]
    method: str = ""
    cached: bool = False
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None  # a function and arguments that rebuild it
    extend: Extend | None = None
    parameters: Parameters = field(default_factory=Parameters)  # the meaning of the input `p`


class Target(Protocol):
    """A code generator for one kind of computer, one floating-point type and one way to use it."""

    @property
    def dtype(self) -> str:
        """Floating-point type of the code, "float64" or "float32"."""
        ...

    @property
    def key(self) -> tuple[str, ...]:
        """Everything that decides the code beside the graph."""
        ...

    @property
    def segments(self) -> tuple[int | None, int]:
        """Most parallel segments of a branch (None: any number), and the least bodies of one; see `Graph.divided`."""
        ...

    def used(self, graph: Graph) -> int:
        """Return the number of processor cores that share the work of `graph` on one state."""
        ...

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the pair of `graphs` that will be fastest here; all compute the same result by different methods."""
        ...

    def source(self, graph: Graph) -> str:
        """Return the text of `graph` for the compiler and for readers."""
        ...

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """Compile `graph`; return facts that JSON can hold, the code, and True if it came from the cache."""
        ...

    def recall(self, facts: Mapping[str, Any]) -> Any:
        """Return the code that belongs to `facts` of an earlier process; None if it is gone."""
        ...

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Any:
        """Return the kernel, described by `about`, of `code` and `facts` that `compile` made, now or earlier."""
        ...
