"""The reference: every public name with its signature and its docstring, every quantity, every command."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import markup

import bellcrank as bc
from bellcrank.dynamics.quantities import SHIPPED

# Groups of public names by the modules that define them; the first match counts.
GROUPS = {
    "mechanisms": ("Mechanisms", r"model|formats|parameters|structures"),
    "kernels": ("Kernels, graphs, schedules", r"dynamics|build\.(?!targets)|emit|graph|scheduling"),
    "runs": ("Systems and runs", r"sim|record|build\.targets|exporting|stud"),
    "scalars": ("For functions that are traced", r"scalar|tables"),
    "errors": ("Errors", r"errors"),
    "rooms": ("Modules", r"$"),
    "more": ("More", r""),
}
WORDS = {
    "mechanisms": "reading, building, describing",
    "kernels": "computing, compiling, counting",
    "runs": "simulate, step, drive, linearise, export",
    "scalars": "sin, where, interp and the like",
    "errors": "what can go wrong",
    "rooms": "zoo, actuators, control and other modules with names of their own",
    "more": "registration, version",
}


def pages(static: Path) -> dict[str, tuple[str, str, str]]:
    """{place: (title, words, Markdown)}"""
    made = {"quantities": ("Quantities", "everything that can be asked of a mechanism", _quantities())}
    for group, (title, _) in GROUPS.items():
        names = [name for name in bc.__all__ if _group(name) == group and not name.startswith("_")]
        body = "\n\n".join(_entry(f"bellcrank.{name}", getattr(bc, name)) for name in names)
        made[group] = (title, WORDS[group], f"# {title}\n\n{body}\n")
    made["commands"] = ("Commands", "every subcommand, its options and examples", _commands())
    return made


def _group(name: str) -> str:
    return next(group for group, (_, where) in GROUPS.items() if re.match(where, bc._MODULE_OF_NAME[name]))


def _quantities() -> str:
    head = (
        "# Quantities\n\nMethods of every mechanism. Each is compiled when it is first asked for and kept on disk. "
        "On a mechanism `help(arm.pose)` also says its joints, its frames and by which method.\n\n"
    )
    rows = [
        f"| {{py:meth}}`{name} <bellcrank.Mechanism.{name}>` | {markup.escaped(q.what)} |"
        for name, q in SHIPPED.items()
    ]
    table = "\n".join(["| quantity | what it is |", "|---|---|", *rows])
    parts = [
        _directive("method", f"bellcrank.Mechanism.{name}{q.signature()}", markup.prose(q.help()))
        for name, q in SHIPPED.items()
    ]
    return head + table + "\n\n" + "\n\n".join(parts) + "\n"


def _directive(kind: str, signature: str, body: str, depth: int = 0) -> str:
    colons = ":" * (8 - depth)
    return f"{colons}{{py:{kind}}} {signature}\n\n{body}\n{colons}"


def signature(thing: Any) -> str:
    """Without quotes around the types, without what a type checker alone wants to know."""
    try:
        found = inspect.signature(thing)
    except (ValueError, TypeError):
        return ""
    kept = [p for p in found.parameters.values() if p.name != "self"]
    text = str(found.replace(parameters=kept))
    return re.sub(r"'([^']*)'(?=[,)= ]|$)", _unquoted, text).replace("<factory>", "...").replace(" -> None", "")


def _unquoted(found: re.Match[str]) -> str:
    """A type; a text that is a default keeps its quotes."""
    before = found.string[: found.start()]
    return found[0] if before.endswith(("= ", "=")) else found[1]


def _entry(name: str, thing: Any) -> str:
    if isinstance(thing, types.ModuleType):
        return _module(name, thing)
    if inspect.isclass(thing):
        return _class(name, thing)
    return _directive("function", f"{name}{signature(thing)}", markup.prose(inspect.getdoc(thing) or ""))


def _module(name: str, module: Any) -> str:
    leaves = getattr(module, "__all__", None) or [n for n, x in vars(module).items() if _own(n, x, module)]
    inside = [(n, getattr(module, n)) for n in sorted(leaves)]
    parts = [_entry(f"{name}.{n}", x) for n, x in inside if callable(x)]
    return "\n\n".join([f"## {name.removeprefix('bellcrank.')}", markup.prose(inspect.getdoc(module) or ""), *parts])


def _own(name: str, thing: Any, module: Any) -> bool:
    return not name.startswith("_") and getattr(thing, "__module__", "").startswith(module.__name__)


def _class(name: str, cls: type) -> str:
    parts = [markup.prose(_docstring(cls))]
    if not issubclass(cls, BaseException):
        parts += [_member(n, x) for n, x in _members(cls)]
    return _directive("class", f"{name}{signature(cls)}", "\n\n".join(part for part in parts if part))


def _docstring(cls: type) -> str:
    """Return the written docstring of a class, without the one that `dataclass` generates."""
    said = cls.__doc__ or ""
    return "" if dataclasses.is_dataclass(cls) and said.startswith(f"{cls.__name__}(") else inspect.getdoc(cls) or ""


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public ones with a docstring, of the class and of those it is made of; quantities have their own page."""
    for name in dir(cls):
        thing = inspect.getattr_static(cls, name)
        if name.startswith("_") or (cls is bc.Mechanism and name in SHIPPED) or isinstance(thing, enum.Enum):
            continue
        if isinstance(thing, property | staticmethod | classmethod) or inspect.isroutine(thing):
            yield name, thing


def _member(name: str, thing: Any) -> str:
    said = markup.prose(inspect.getdoc(thing) or "")
    if isinstance(thing, property):
        return _directive("attribute", name, said, depth=1)
    called = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
    return _directive("method", f"{name}{signature(called).replace('(cls, ', '(')}", said, depth=1)


def _commands() -> str:
    """`bellcrank COMMAND --help` of every command, as it is printed."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from bellcrank.cli import app

    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    parts = ["# Commands", markup.fenced(runner.invoke(app, ["--help"]).stdout.strip(), "text")]
    for name in get_command(app).commands:  # type: ignore[attr-defined]
        text = runner.invoke(app, [name, "--help"]).stdout.strip()
        parts += [f"## bellcrank {name}", markup.fenced(text)]
    return "\n\n".join(parts) + "\n"
