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
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypeVar, overload

from bellcrank.errors import InputError, brief, check_known
from bellcrank.lazy_import import CompiledQuantity, discard_compiled
from bellcrank.quoting import name_problem, quoted_name

Kind: TypeAlias = Literal[
    "actuator", "closure", "cockpit", "cut", "format", "integrator", "joint", "language", "machine", "mechanism",
    "method", "processor", "program", "quantity", "record",
]  # fmt: skip
Thing = TypeVar("Thing")
MakeEntry: TypeAlias = Callable[[str, str, Any], Any]  # kind, name and thing to the checked entry of a table
_ABSENT: Any = object()
_registered: set[tuple[str, str]] = set()  # (kind, name) of registered extensions
KINDS_AFFECTING_CODE = ("closure", "joint", "method", "quantity")  # kinds that affect the code of a mechanism
IRREPLACEABLE_KINDS = ("closure", "joint")  # kinds that mechanisms contain


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
        program    function(mechanism, numbers, kind) giving a MethodSchedule         bc.schedule(..., machine)
        quantity   a bellcrank.dynamics.Quantity, which some method solves            mechanism.<name>
        record     a module with WHAT, MAGIC, write and read; its name is ".suffix"   Record.save, bc.load_record
    """
    check_known("kind of thing to register", kind, KINDS)
    row = KINDS[kind]
    _check_name(kind, name, row.suffix)
    if thing is _ABSENT:
        return partial(register, kind, name, replace=replace)
    table = row.table()
    replaceable = (kind, name) in _registered and replace and kind not in IRREPLACEABLE_KINDS
    if name in (*table, *row.reserved) and not replaceable:
        raise InputError(_name_taken(kind, name))
    table[name] = row.make_entry(kind, name, thing)
    _registered.add((kind, name))
    if kind in KINDS_AFFECTING_CODE:
        discard_compiled()
    return thing


def _check_name(kind: str, name: Any, suffix: bool) -> None:
    good = isinstance(name, str) and not name_problem(name)
    if not (good and (name[:1] == "." and len(name) > 1 and name == name.lower() if suffix else name.isidentifier())):
        expected = 'a file suffix in lower case, such as ".robot"' if suffix else "a name such as my_own"
        raise InputError(f"register: the name of a {kind} is {brief(name)}; expected {expected}.")


def _name_taken(kind: str, name: str) -> str:
    where = f'register: there is a {kind} "{name}" already'
    if (kind, name) not in _registered:
        return f"{where}, which is part of bellcrank. Choose another name."
    if kind in IRREPLACEABLE_KINDS:
        return f"{where}, and mechanisms may contain it. Choose another name, or restart Python."
    return f"{where}, which you registered. replace=True replaces it."


def _wrong_type(kind: str, name: str, thing: Any, expected: str) -> InputError:
    return InputError(f'register: {kind} "{name}" is {brief(thing)}; expected {expected}.')


def _check_callable(kind: str, name: str, function: Any, *arguments: str, **named: Any) -> None:
    """Raise InputError if a function cannot be called with these arguments."""
    call_text = f"({', '.join([*arguments, *named])})"
    if not callable(function):
        raise _wrong_type(kind, name, function, f"a function {call_text}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # builtins may have no signature
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        message = f'register: {kind} "{name}" is a function {signature}, and will be called as {call_text}: {error}.'
        raise InputError(message) from None


# -- checks of the entries of each table


def _checked_function(arguments: tuple[str, ...], kind: str, name: str, thing: Any) -> Any:
    _check_callable(kind, name, thing, *arguments)
    return thing


def _sized_entry(kind: str, name: str, thing: Any) -> Any:
    """Check a function of any number of numbers."""
    if not callable(thing) or isinstance(thing, type):
        raise _wrong_type(kind, name, thing, "a function of the numbers that follow its name")
    return thing


def _member(path: str) -> Any:
    """Import what KINDS names, e.g. "actuators.Actuator"."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"bellcrank.{module}"), name)


def _checked_subclass(base: str, kind: str, name: str, thing: Any) -> type:
    if not isinstance(thing, type) or not issubclass(thing, _member(base)):
        raise _wrong_type(kind, name, thing, f"a subclass of bellcrank.{base}")
    if missing := ", ".join(sorted(getattr(thing, "__abstractmethods__", ()))):
        raise InputError(f'register: {kind} "{name}": {thing.__name__} has no {missing}.')
    return thing


def _checked_instance(class_path: str, kind: str, name: str, thing: Any) -> Any:
    if not isinstance(thing, _member(class_path)):
        raise _wrong_type(kind, name, thing, f"a bellcrank.{class_path}")
    return _checked_name(kind, name, thing)


def _checked_name(kind: str, name: str, thing: Any) -> Any:
    own_name = getattr(thing, "name", None)
    if own_name != name:
        raise InputError(f'register: {kind} "{name}" has the attribute name = {brief(own_name)}. Use one name.')
    return thing


def _joint_entry(kind: str, name: str, thing: Any) -> Any:
    _checked_name(kind, name, _checked_subclass("model.kind.Kind", kind, name, thing))
    from bellcrank.model.joint_laws import check_joint_type

    check_joint_type(thing)
    return thing


def _method_entry(kind: str, name: str, thing: Any) -> Any:
    from bellcrank.dynamics import method_table
    from bellcrank.dynamics.quantities import QUANTITIES

    if isinstance(thing, method_table.Method):
        return _checked_name(kind, name, thing)
    single = inspect.isfunction(thing)
    holder = SimpleNamespace(**{thing.__name__: thing}) if single else thing
    solved_quantities = [key for key in QUANTITIES if callable(getattr(holder, key, None))]
    if not solved_quantities:
        what = f"a function named {quoted_name(thing.__name__)}" if single else brief(thing)
        known = ", ".join(QUANTITIES)
        raise InputError(
            f'register: method "{name}" is {what}; expected a function with the name of the quantity which it solves, '
            f"or a module or a class with some. Quantities: {known}."
        )
    for key in solved_quantities:
        frame = {"frame": ""} if QUANTITIES[key].option == "frame" else {}
        _check_callable(kind, f"{name}: {key}", getattr(holder, key), "tree", *QUANTITIES[key].inputs, **frame)
    summary = (inspect.getdoc(thing) or f"{getattr(thing, '__module__', None) or name}, of your own").partition("\n")[0]
    return method_table.Method(name, holder, tuple(solved_quantities), method_table.ANY, summary, regrouped=False)


def _quantity_entry(kind: str, name: str, thing: Any) -> Any:
    from bellcrank.dynamics.quantities import INPUTS
    from bellcrank.model.mechanism import Mechanism

    _checked_instance("dynamics.Quantity", kind, name, thing)
    if hasattr(Mechanism, name) and ("quantity", name) not in _registered:
        raise InputError(f'register: a Mechanism has another attribute named "{name}". Choose another name.')
    for x in thing.inputs:
        check_known("input", x, INPUTS, f'register: quantity "{name}"')
    setattr(Mechanism, name, CompiledQuantity(name))
    return thing


def _closure_entry(kind: str, name: str, thing: Any) -> Any:
    if not (isinstance(thing, tuple) and len(thing) == 2 and all(isinstance(x, str) for x in thing[0])):
        raise _wrong_type(kind, name, thing, "(names of its equations, function(a, b, loop))")
    _check_callable(kind, name, thing[1], "a", "b", "loop")
    from bellcrank.model.parts import EQUATIONS

    EQUATIONS[name] = len(thing[0])
    return thing


def _record_entry(kind: str, name: str, thing: Any) -> Any:
    missing = [x for x in ("WHAT", "MAGIC", "write", "read") if not hasattr(thing, x)]
    if missing:
        raise InputError(f'register: record "{name}" is {brief(thing)}, which has no {", ".join(missing)}.')
    return thing


@dataclass(frozen=True)
class _KindRow:
    """Location of a table, and the function that checks a thing and returns its table entry."""

    module: str
    attribute: str
    make_entry: MakeEntry
    suffix: bool = False  # its name is a file suffix
    reserved: tuple[str, ...] = ()  # names that exist elsewhere

    def table(self) -> dict[str, Any]:
        """Return the table."""
        table: dict[str, Any] = _member(f"{self.module}.{self.attribute}")
        return table


KINDS: dict[str, _KindRow] = {
    "actuator": _KindRow("actuators", "ACTUATORS", partial(_checked_subclass, "actuators.Actuator")),
    "closure": _KindRow("dynamics.loops.constraint_equations", "CLOSURES", _closure_entry),
    "cockpit": _KindRow("excavators.machines", "MACHINES", partial(_checked_function, ())),
    "cut": _KindRow("build.schedules", "CUTS", partial(_checked_function, ("mechanism", "strategies", "control"))),
    "format": _KindRow("formats", "READERS", partial(_checked_function, ("data", "source")), suffix=True),
    "integrator": _KindRow("integrate", "INTEGRATORS", partial(_checked_instance, "integrate.Integrator")),
    "joint": _KindRow("model.joints", "KINDS", _joint_entry),
    "language": _KindRow("build.equations", "TEXT_TARGETS", partial(_checked_function, ("sheet", "digits"))),
    "machine": _KindRow("scheduling.machines", "LAYOUTS", _sized_entry, reserved=("gpu", "threads")),
    "mechanism": _KindRow("zoo", "TABLE", _sized_entry),
    "method": _KindRow("dynamics.method_table", "METHODS", _method_entry),
    "processor": _KindRow("scheduling.machines", "KINDS", partial(_checked_function, ("topology",))),
    "program": _KindRow("build.schedules", "PROGRAMS", partial(_checked_function, ("mechanism", "numbers", "kind"))),
    "quantity": _KindRow("dynamics.quantities", "QUANTITIES", _quantity_entry),
    "record": _KindRow("record.formats", "SUFFIXES", _record_entry, suffix=True),
}


def register_entry(kind: Kind, name: str, thing: Any) -> Any:
    """Register `thing`, of this `kind` and `name`, which a package offers; return its entry in the table."""
    register(kind, name, thing)
    return KINDS[kind].table()[name]
