"""Syntax trees of Python text, made by one thread at a time.

CPython 3.11 and 3.12 count the depth of trees for all threads of an interpreter together. Two threads that make trees
at once may so end in a SystemError, "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
from typing import Any

from bellcrank.once import LOCK


def syntax_tree(text: str, mode: str = "exec") -> Any:
    """Return the tree of a text, as ast.parse does; mode "eval" is for one expression."""
    with LOCK:
        return ast.parse(text, mode=mode)
