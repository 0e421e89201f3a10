"""Thread-safe parsing of Python text into syntax trees.

CPython 3.11 and 3.12 count the depth of trees for all threads of an interpreter together. Two threads that parse at
the same time may therefore raise a SystemError, "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
from typing import Any

from bellcrank.single_evaluation import EVALUATION_LOCK


def syntax_tree(text: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a `text`, as ast.parse does; `mode` "eval" is for one expression."""
    with EVALUATION_LOCK:
        return ast.parse(text, mode=mode)
