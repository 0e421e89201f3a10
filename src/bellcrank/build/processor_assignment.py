"""Assignment of the parts of the equations of motion to processors, given by the user (Schäfer 1992, section 4).

    modules       M, k, q, drives, u, C, L, a, g, end, reactions: what they compute is in subsystem_tasks.py
    subsystems    sets of bodies, by the names of bodies or of frames on them; M, k, q (and L, a) exist for each
    J             values that several modules share, with shared = "sent"
    state         the owner of positions and velocities; without it all processors know them

A key of `processors` is a module ("M"), a subsystem ("left"), or a module of a subsystem ("M left"). The most special
key counts. A file is TOML with the same fields:

    machine = "complete:3"
    kind = "t800"

    [processors]
    M = 0
    k = 1
    q = 2
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from bellcrank.dynamics.historical.control_laws import CONTROL_LAWS
from bellcrank.errors import InputError, ReadError, brief, check_known
from bellcrank.files import read_bytes
from bellcrank.model import Mechanism
from bellcrank.quoting import quoted_name

GLOBAL_MODULES = ("state", "J", "drives", "u", "C", "g", "end", "reactions")
SUBSYSTEM_MODULES = ("M", "k", "q", "L", "a")  # L and a are global where coordinates couple the subsystems
MODULES = (*SUBSYSTEM_MODULES, *GLOBAL_MODULES)
COUPLINGS = ("coordinates", "forces")
SHARING_MODES = ("copied", "sent")
MAX_PROCESSOR = 10**6


@dataclass(frozen=True)
class ProcessorAssignment:
    """Processors of the modules of the equations of motion.

    Parameters
    ----------
    processors : mapping of str to int
        Processor of each module, subsystem, or module of a subsystem: {"M": 0, "left": 1, "k left": 2}.
    subsystems : mapping of str to sequence of str
        Bodies of each subsystem, by the names of bodies or frames; by default all bodies are one subsystem.
    machine : str
        Name of the machine, such as "complete:3".
    kind : str
        Kind of the machine, such as "t800".
    coupling : {"coordinates", "forces"}
        Elimination of the forces at the cuts: by the Jacobians of the subsystems, or by solving for them.
    shared : {"copied", "sent"}
        Values that several modules need are computed in each of them, or once in module J.
    control : str
        Control law of module u: "none" (the input is a force), "proportional" or "computed_torque".
    """

    processors: Mapping[str, int]
    subsystems: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machine: str = "complete:3"
    kind: str = "t800"
    coupling: str = "coordinates"
    shared: str = "copied"
    control: str = "none"

    def __post_init__(self) -> None:
        """Raise InputError if a field is not valid."""
        for name in ("machine", "kind"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"assignment: {name} is {brief(getattr(self, name))}; expected a text.")
        check_known("coupling", self.coupling, COUPLINGS, "assignment")
        check_known("way to share", self.shared, SHARING_MODES, "assignment")
        check_known("control law", self.control, CONTROL_LAWS, "assignment")
        self._check_tables()
        known = (*MODULES, *self.subsystems, *(f"{m} {s}" for s in self.subsystems for m in SUBSYSTEM_MODULES))
        for key, p in self.processors.items():
            check_known("module or subsystem", key, known, "assignment")
            if isinstance(p, bool) or not isinstance(p, int) or not 0 <= p < MAX_PROCESSOR:
                raise InputError(
                    f"assignment: the processor of {quoted_name(key)} is {brief(p)}; expected a whole number from 0 on."
                )

    def _check_tables(self) -> None:
        if not isinstance(self.processors, Mapping) or not self.processors:
            raise InputError(
                f"assignment: processors is {brief(self.processors)}; expected a table of modules, such as M = 0."
            )
        if not isinstance(self.subsystems, Mapping):
            raise InputError(f"assignment: subsystems is {brief(self.subsystems)}; expected a table of lists of names.")
        for name, bodies in self.subsystems.items():
            if not isinstance(name, str) or not name or " " in name or name in MODULES:
                raise InputError(
                    f"assignment: a subsystem is called {brief(name)}; expected one word that is not the name of a "
                    f"module: {', '.join(MODULES)}."
                )
            if not isinstance(bodies, list | tuple) or not all(isinstance(x, str) for x in bodies):
                raise InputError(
                    f"assignment: subsystem {quoted_name(name)} is {brief(bodies)}; expected a list of names of bodies."
                )

    def processor(self, module: str, subsystem: str = "") -> int:
        """Return the processor of a module.

        Parameters
        ----------
        module : str
            Name of the module.
        subsystem : str
            Its subsystem; empty for a module of the whole mechanism.

        Returns
        -------
        int
            Index of the processor.

        Raises
        ------
        InputError
            If no key gives it.
        """
        keys = (f"{module} {subsystem}", subsystem, module) if subsystem else (module,)
        for key in keys:
            if key in self.processors:
                return self.processors[key]
        text = " or ".join(quoted_name(key) for key in keys)
        raise InputError(
            f"assignment: no processor for {quoted_name(' '.join(filter(None, (module, subsystem))))}; expected {text} "
            f"among the processors. Given: {', '.join(map(str, self.processors))}."
        )

    def members(self, m: Mechanism) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the subsystem of each body of a mechanism, and the names of the subsystems.

        Parameters
        ----------
        m : Mechanism
            The mechanism.

        Returns
        -------
        tuple
            Index of the subsystem of each body, and names.

        Raises
        ------
        InputError
            If a name is unknown, or a body is in two subsystems or in none.
        """
        links = [link.name for link in m.tree.links]
        if not self.subsystems:
            return (0,) * len(links), ("",)
        names, member = tuple(self.subsystems), dict[str, str]()
        for name, given in self.subsystems.items():
            for word in given:
                body = word if word in links or word not in m.frames else m.frames[word].body
                if body not in links:
                    inside = f"assignment: subsystem {quoted_name(name)}"
                    check_known("body or frame", word, (*links, *m.frames), inside)
                    raise InputError(
                        f"assignment: frame {quoted_name(word)} of subsystem {quoted_name(name)} is on "
                        f"{quoted_name(body)}, which does not move; expected a moving body: {', '.join(links)}."
                    )
                if member.setdefault(body, name) != name:
                    raise InputError(
                        f"assignment: body {quoted_name(body)} is in the subsystems {quoted_name(member[body])} and "
                        f"{quoted_name(name)}; expected each body in one. Remove it from one of them."
                    )
        if missing := [body for body in links if body not in member]:
            raise InputError(
                f"assignment: {', '.join(map(quoted_name, missing[:10]))} "
                f"{'is' if len(missing) == 1 else 'are'} in no subsystem of {quoted_name(m.name)}; expected every "
                f"body in one of {', '.join(names)}."
            )
        return tuple(names.index(member[body]) for body in links), names


def read_assignment(path: str | Path) -> ProcessorAssignment:
    """Read an assignment from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ProcessorAssignment
        The assignment.

    Raises
    ------
    ReadError
        If the file is not such a table.
    """
    try:
        data: dict[str, Any] = tomllib.loads(read_bytes(Path(path), "assignment")[2].decode("utf-8"))
    except ReadError:
        raise
    except RecursionError:
        raise ReadError(f"{path} is not readable TOML: it is nested too deeply.") from None
    except ValueError as error:  # also invalid UTF-8, and integers with thousands of digits
        raise ReadError(f"{path} is not TOML: {str(error)[:300]}. Correct the file there.") from None
    known = [x.name for x in fields(ProcessorAssignment)]
    for key in data:
        check_known("setting", key, known, str(path), ReadError)
    if "processors" not in data:
        raise ReadError(f"{path}: has no table [processors]; expected the processor of each module, such as M = 0.")
    try:
        return ProcessorAssignment(**data)
    except InputError as error:
        raise ReadError(f"{path}: {error}") from None
