"""Registration of user-defined joints, methods, quantities and more beside those of the package.

Each kind of extension has a table in the package; a row here names that table and checks its entries. Graphs that a
user-defined extension may affect are traced every time, and their code is found by the resulting graph
(build/kernels.py): a changed method never returns results of its old version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypeVar, overload

from bellcrank.errors import InputError, brief, unknown
from bellcrank.quoting import refused, shown
from bellcrank.stairs import above, compiled, forget

Kind: TypeAlias = Literal[
    "actuator", "closure", "cockpit", "cut", "format", "integrator", "joint", "language", "machine", "mechanism",
    "method", "processor", "program", "quantity", "record",
]  # fmt: skip
Thing = TypeVar("Thing")
_ABSENT: Any = object()
_own: set[tuple[str, str]] = set()  # (kind, name) of registered extensions
DECIDING = ("closure", "joint", "method", "quantity")  # kinds that affect the code of a mechanism
LASTING = ("closure", "joint")  # kinds that mechanisms contain


@overload
def register(kind: Kind, name: str, *, replace: bool = False) -> Callable[[Thing], Thing]: ...


@overload
def register(kind: Kind, name: str, thing: Thing, *, replace: bool = False) -> Thing: ...
def register(kind: Kind, name: str, thing: Any = _ABSENT, *, replace: bool = False) -> Any:
    """Register an extension of your own in this process.

    For example::

        @bc.register("method", "lumped")
        def mass_matrix(tree, q): ...

        bc.kernel(arm, "mass_matrix", method="lumped")

    A package registers by entry points, group "bellcrank.<kind>". docs/extending.md has examples.

    Parameters
    ----------
    kind : str
        Kind of extension; see below.
    name : str
        Name under which it is used.
    thing : optional
        The extension; without it, a decorator is returned.
    replace : bool
        Replace an extension that you registered before; those of bellcrank cannot be replaced.

    Returns
    -------
    object
        The extension itself, or a decorator.

    Raises
    ------
    InputError
        If the kind is unknown, the name is invalid or taken, or the extension does not fit its kind.

    Notes
    -----
    The kinds, their extensions, and where the name is used::

        actuator   a subclass of bellcrank.actuators.Actuator                         bellcrank.actuators.ACTUATORS
        closure    (names of its equations, function(a, b, loop))                     Builder.close(..., kind)
        cockpit    function() giving a bellcrank.cockpit.machines.Machine             bellcrank drive
        cut        function(mechanism, strategies, control) giving Tasks              bc.schedule(..., strategy=)
        format     function(data, source) giving a Mechanism; its name is ".suffix"   bc.read
        integrator a bellcrank.integrate.Integrator                                   bc.simulate(..., integrator=)
        joint      a subclass of bellcrank.model.kind.Kind                            Builder.joint(..., kind)
        language   function(sheet, digits) giving text                                bc.equations(..., target)
        machine    function(numbers) giving a Topology                                bc.schedule(..., machine)
        mechanism  function(numbers) giving a Mechanism                               bc.zoo.load, the command line
        method     a function named as a quantity, (tree, q, ...); a module or a      bc.kernel(..., method), and "auto"
                   class with several; or a bellcrank.dynamics.Method
        processor  function(topology) giving a Machine                                bc.schedule(..., kind=)
        program    function(mechanism, numbers, kind) giving a Laid                   bc.schedule(..., machine)
        quantity   a bellcrank.dynamics.Quantity, which some method solves            mechanism.<name>
        record     a module with WHAT, MAGIC, write and read; its name is ".suffix"   Record.save, bc.load_record
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(unknown("kind of thing to register", kind, KINDS))
    row = KINDS[kind]
    _check_name(kind, name, row.suffix)
    if thing is _ABSENT:
        return partial(register, kind, name, replace=replace)
    table = row.table()
    if name in (*table, *row.reserved) and not ((kind, name) in _own and replace and kind not in LASTING):
        raise InputError(_taken(kind, name))
    table[name] = row.made(name, thing)
    _own.add((kind, name))
    if kind in DECIDING:
        forget()
    return thing


def _check_name(kind: str, name: Any, suffix: bool) -> None:
    good = isinstance(name, str) and not refused(name)
    if not (good and (name[:1] == "." and len(name) > 1 and name == name.lower() if suffix else name.isidentifier())):
        expected = 'a file suffix in lower case, such as ".robot"' if suffix else "a name such as my_own"
        raise InputError(f"register: the name of a {kind} is {brief(name)}; expected {expected}.")


def _taken(kind: str, name: str) -> str:
    where = f'register: there is a {kind} "{name}" already'
    if (kind, name) not in _own:
        return f"{where}, which is part of bellcrank. Choose another name."
    if kind in LASTING:
        return f"{where}, and mechanisms may contain it. Choose another name, or restart Python."
    return f"{where}, which you registered. replace=True replaces it."


def _wrong(kind: str, name: str, thing: Any, expected: str) -> InputError:
    return InputError(f'register: {kind} "{name}" is {brief(thing)}; expected {expected}.')


def _fits(kind: str, name: str, function: Any, *arguments: str, **named: Any) -> None:
    """Raise InputError if a function cannot be called with these arguments."""
    called = f"({', '.join([*arguments, *named])})"
    if not callable(function):
        raise _wrong(kind, name, function, f"a function {called}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # builtins may have no signature
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        told = f'register: {kind} "{name}" is a function {signature}, and will be called as {called}: {error}.'
        raise InputError(told) from None


# -- checks of the entries of each table


def _function(kind: str, *arguments: str) -> Callable[[str, Any], Any]:
    def made(name: str, thing: Any) -> Any:
        _fits(kind, name, thing, *arguments)
        return thing

    return made


def _sized(kind: str) -> Callable[[str, Any], Any]:
    """Return a check for a function of any number of numbers."""

    def made(name: str, thing: Any) -> Any:
        if not callable(thing) or isinstance(thing, type):
            raise _wrong(kind, name, thing, "a function of the numbers that follow its name")
        return thing

    return made


def _subclass(kind: str, base: str, name: str, thing: Any) -> type:
    module, _, of = base.rpartition(".")
    if not isinstance(thing, type) or not issubclass(thing, getattr(above(module), of)):
        raise _wrong(kind, name, thing, f"a subclass of bellcrank.{base}")
    if missing := ", ".join(sorted(getattr(thing, "__abstractmethods__", ()))):
        raise InputError(f'register: {kind} "{name}": {thing.__name__} has no {missing}.')
    return thing


def _instance(kind: str, of: str, name: str, thing: Any) -> Any:
    module, _, leaf = of.rpartition(".")
    if not isinstance(thing, getattr(above(module), leaf)):
        raise _wrong(kind, name, thing, f"a bellcrank.{of}")
    return _called(kind, name, thing)


def _called(kind: str, name: str, thing: Any) -> Any:
    own = getattr(thing, "name", None)
    if own != name:
        raise InputError(f'register: {kind} "{name}" has the attribute name = {brief(own)}. Use one name.')
    return thing


def _joint(name: str, thing: Any) -> Any:
    _called("joint", name, _subclass("joint", "model.kind.Kind", name, thing))
    above("model.joint_laws").check(thing)
    return thing


def _method(name: str, thing: Any) -> Any:
    table, quantities = above("dynamics.table"), above("dynamics.quantities").QUANTITIES
    if isinstance(thing, table.Method):
        return _called("method", name, thing)
    single = inspect.isfunction(thing)
    holder = SimpleNamespace(**{thing.__name__: thing}) if single else thing
    solved = [key for key in quantities if callable(getattr(holder, key, None))]
    if not solved:
        what = f"a function named {shown(thing.__name__)}" if single else brief(thing)
        known = ", ".join(quantities)
        raise InputError(
            f'register: method "{name}" is {what}; expected a function with the name of the quantity which it solves, '
            f"or a module or a class with some. Quantities: {known}."
        )
    for key in solved:
        frame = {"frame": ""} if quantities[key].option == "frame" else {}
        _fits("method", f"{name}: {key}", getattr(holder, key), "tree", *quantities[key].inputs, **frame)
    said = (inspect.getdoc(thing) or f"{getattr(thing, '__module__', None) or name}, of your own").partition("\n")[0]
    return table.Method(name, holder, tuple(solved), table.ANY, said, regrouped=False)


def _quantity(name: str, thing: Any) -> Any:
    from bellcrank.dynamics.quantities import INPUTS
    from bellcrank.model.mechanism import Mechanism

    _instance("quantity", "dynamics.Quantity", name, thing)
    if hasattr(Mechanism, name) and ("quantity", name) not in _own:
        raise InputError(f'register: a Mechanism has another attribute named "{name}". Choose another name.')
    for x in thing.inputs:
        if x not in INPUTS:
            raise InputError(f'register: quantity "{name}": {unknown("input", x, INPUTS)}')

    def asked(self: Any, *args: Any, **named: Any) -> Any:
        return getattr(self, name)(*args, **named)

    asked.__name__, asked.__qualname__, asked.__doc__ = name, f"Mechanism.{name}", thing.help()
    setattr(Mechanism, name, compiled(asked))
    return thing


def _closure(name: str, thing: Any) -> Any:
    if not (isinstance(thing, tuple) and len(thing) == 2 and all(isinstance(x, str) for x in thing[0])):
        raise _wrong("closure", name, thing, "(names of its equations, function(a, b, loop))")
    _fits("closure", name, thing[1], "a", "b", "loop")
    above("model.parts").EQUATIONS[name] = len(thing[0])
    return thing


def _record(name: str, thing: Any) -> Any:
    missing = [x for x in ("WHAT", "MAGIC", "write", "read") if not hasattr(thing, x)]
    if missing:
        raise InputError(f'register: record "{name}" is {brief(thing)}, which has no {", ".join(missing)}.')
    return thing


@dataclass(frozen=True)
class _Row:
    """Location of a table, and the function that checks a thing and returns its table entry."""

    module: str
    attribute: str
    made: Callable[[str, Any], Any]
    suffix: bool = False  # its name is a file suffix
    reserved: tuple[str, ...] = ()  # names that exist elsewhere

    def table(self) -> dict[str, Any]:
        """Return the table."""
        found: dict[str, Any] = getattr(above(self.module), self.attribute)
        return found


KINDS: dict[str, _Row] = {
    "actuator": _Row("actuators", "ACTUATORS", partial(_subclass, "actuator", "actuators.Actuator")),
    "closure": _Row("dynamics.loops.rows", "CLOSURES", _closure),
    "cockpit": _Row("excavators.machines", "MACHINES", _function("cockpit")),
    "cut": _Row("build.schedules", "CUTS", _function("cut", "mechanism", "strategies", "control")),
    "format": _Row("formats", "READERS", _function("format", "data", "source"), suffix=True),
    "integrator": _Row("integrate", "INTEGRATORS", partial(_instance, "integrator", "integrate.Integrator")),
    "joint": _Row("model.joints", "KINDS", _joint),
    "language": _Row("build.equations", "TARGETS", _function("language", "sheet", "digits")),
    "machine": _Row("scheduling.machines", "LAYOUTS", _sized("machine"), reserved=("gpu", "threads")),
    "mechanism": _Row("zoo", "TABLE", _sized("mechanism")),
    "method": _Row("dynamics.table", "METHODS", _method),
    "processor": _Row("scheduling.machines", "KINDS", _function("processor", "topology")),
    "program": _Row("build.schedules", "PROGRAMS", _function("program", "mechanism", "numbers", "kind")),
    "quantity": _Row("dynamics.quantities", "QUANTITIES", _quantity),
    "record": _Row("record.formats", "SUFFIXES", _record, suffix=True),
}
