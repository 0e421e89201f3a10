"""Readers of mechanisms from files: URDF, MJCF and Denavit-Hartenberg tables. `Builder` makes them in Python.

The import of each reader is deferred to its first use, so that `import bellcrank` stays light.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, ReadError, warn_deprecated
from bellcrank.formats.builder import Builder
from bellcrank.formats.dh import DhRow, from_dh, from_saha, from_wong
from bellcrank.formats.locked_joints import Lock
from bellcrank.formats.number_checks import vector
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.pose import RIGHT_ANGLES, AngleReader

if TYPE_CHECKING:
    from bellcrank.formats.urdf_loops import LoopFile

__all__ = ["Builder", "DhRow", "from_dh", "from_saha", "from_wong", "read"]


def __getattr__(name: str) -> Any:
    """Return DhRow under its former name Row, which is deprecated."""
    if name != "Row":
        raise AttributeError(f'module "{__name__}" has no attribute "{name}"')
    warn_deprecated("bellcrank.formats.Row", "bellcrank.formats.DhRow")
    return DhRow


SUFFIXES = (".urdf", ".xml", ".toml")
# Readers of plug-ins, by suffix: (data, source, and those arguments of `read` that differ from its defaults) ->
# Mechanism.
READERS: dict[str, Callable[..., Mechanism]] = {}
SUFFIX_TIPS = {
    ".xacro": " Run xacro on it first: xacro robot.xacro > robot.urdf",
    ".py": " For an object in a Python file, the command line takes FILE.py:NAME.",
}
MAX_FILE_BYTES = 100_000_000  # bytes; the largest known robot file has about a million
# Root elements of XML files that are not read, and what to do about them.
FOREIGN_ROOTS = {
    "sdf": "an SDF model, which is not read. Convert it to URDF.",
    "mujocoinclude": "a part of a MuJoCo model. Read the file that includes it.",
    "COLLADA": "a COLLADA mesh, not a mechanism. Read the .urdf that refers to it.",
}


@explain_argument_errors
def read(
    path: str | os.PathLike[str],
    *,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    check: str = "warn",
    right_angles: float = RIGHT_ANGLES,
    lock: Lock = (),
    loops: str | os.PathLike[str] | bool = True,
) -> Mechanism:
    """Read the mechanism in a file.

    Parameters
    ----------
    path : path or str
        A .urdf or .xml file (URDF; MJCF with MuJoCo), or a .toml file (a joint table, see formats/dh.py). A
        string that begins with "<" is the text of the file itself.
    base : {"fixed", "floating"}
        "fixed" makes the root link the ground; "floating" connects it to the ground by a free joint "root_joint".
    gravity : sequence of 3 floats, optional
        In world axes, m/s^2. Default (0, 0, -9.81), or the value in a MuJoCo model.
    check : {"warn", "error"}
        "warn" accepts inertias that no real body has and reports them in `mechanism.report`, as long as no mass matrix
        has a negative eigenvalue (model/energy_check.py); "error" refuses them, as `Builder` does.
    right_angles : float
        Angles of the file within this many radians of a multiple of a quarter turn are taken as exact, and reported.
    lock : sequence of str, or mapping of str to float
        Joints to fix, by name (at zero) or as {name: value}, rad or m.
    loops : path or bool
        A YAML file with a URDF's closed loops (formats/urdf_loops.py). By default the one of the same name beside it,
        if there is one; False ignores that one.

    Returns
    -------
    Mechanism
        The mechanism; its `report` lists what became of every part of the file.

    Raises
    ------
    InputError
        If an argument is invalid.
    ReadError
        If the file cannot be read.
    ModelError
        If the file describes no valid mechanism.
    """
    if base not in ("fixed", "floating"):
        raise InputError(f'base is {base!r}; expected "fixed" or "floating".')
    if check not in ("error", "warn"):
        raise InputError(f'check is {check!r}; expected "error" or "warn".')
    AngleReader(right_angles)  # checks it

    options: dict[str, Any] = {"check": check, "right_angles": right_angles, "lock": lock}
    options["gravity"] = None if gravity is None else vector(gravity, "read", "gravity")
    if isinstance(path, str) and path.lstrip().startswith("<"):
        loop_file = _loop_file(Path(), loops if loops is not True else False)
        text = path.lstrip().encode("utf-8", "replace")  # URDF or MJCF
        return _xml(text, "URDF text", "utf-8", base=base, loop_file=loop_file, **options)
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path is {path!r}; expected the path of a file.")
    source = os.fspath(path)
    data = _checked_bytes(Path(source))
    plugin_reader = READERS.get(Path(source).suffix.lower())
    if plugin_reader is not None:
        arguments, parameters = {"base": base, "loops": loops, **options}, signature(read).parameters
        return plugin_reader(data, source, **{k: x for k, x in arguments.items() if x != parameters[k].default})
    if not source.lower().endswith(".toml"):
        return _xml(data, source, base=base, loop_file=_loop_file(Path(source), loops), **options)
    if base == "floating":
        raise InputError(f'{source}: base="floating" needs a base link, and a joint table starts at the ground.')
    from bellcrank.formats.dh import read_table

    return read_table(data, source, **_with_default_gravity(options))


def _xml(data: bytes, source: str, encoding: str | None = None, **options: Any) -> Mechanism:
    from bellcrank.formats.urdf import read_urdf
    from bellcrank.formats.xml_elements import parse_xml

    root = parse_xml(data, source, encoding)
    if root.tag == "mujoco":
        from bellcrank.formats.mjcf import read_mjcf

        if options["base"] == "floating":
            raise InputError(f'{source}: base="floating" is for URDF; a MuJoCo model defines its free bodies itself.')
        text = data.decode("utf-8", "replace") if encoding is not None else None
        source = source if text is None else "MJCF text"
        return read_mjcf(text, source, **{key: options[key] for key in ("gravity", "check", "lock")})
    if root.tag != "robot":
        what = FOREIGN_ROOTS.get(root.tag, "not URDF, whose root element is <robot>.")
        raise ReadError(f"{source}: the root element is <{root.tag}>: {what}")
    return read_urdf(root, **_with_default_gravity(options))


def _loop_file(urdf: Path, loops: str | os.PathLike[str] | bool) -> LoopFile | None:
    """Return the YAML file `loops`, or the one beside `urdf` with its name (robot.yaml, robot.yml), or None.

    Parameters
    ----------
    urdf
        Path of the URDF.
    loops
        Path of a YAML file; True for the one beside the URDF; False for none.
    """
    if loops is False:
        return None
    if loops is not True and not isinstance(loops, (str, os.PathLike)):
        raise InputError(f"loops is {loops!r}; expected the path of a YAML file, or False for none.")
    paths = [str(urdf.with_suffix(x)) for x in (".yaml", ".yml")] if loops is True else [os.fspath(loops)]
    for path in paths:
        if loops is True and not Path(path).is_file():
            continue
        data = robot_file_bytes(Path(path))
        if loops is not True or b"closed_loop" in data:  # other files beside the URDF are not about loops
            from bellcrank.formats.urdf_loops import read_loop_file

            return read_loop_file(data, path)
    return None


def _with_default_gravity(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the default gravity if none was given."""
    return options if options["gravity"] is not None else options | {"gravity": (0.0, 0.0, -9.81)}


def _checked_bytes(path: Path) -> bytes:
    """Return the content of a file, or raise an error that names what exists instead."""
    try:
        if path.is_dir():
            raise ReadError(
                f"{path} is a folder; expected a file. It holds: "
                f"{', '.join(_robot_files(path)[:20]) or 'no robot file'}."
            )
        if not path.exists():
            raise ReadError(_missing_file_message(path))
    except OSError as error:  # a name too long
        raise ReadError(f"{path} cannot be read: {error}. Check the path and its permissions.") from None
    if path.suffix.lower() not in (*SUFFIXES, *READERS):
        tip = SUFFIX_TIPS.get(path.suffix.lower(), "")
        raise ReadError(f'{path}: files ending in "{path.suffix}" are not read; expected {", ".join(SUFFIXES)}.{tip}')
    return robot_file_bytes(path)


def robot_file_bytes(path: Path) -> bytes:
    """Return the bytes of the file `path`; raise a ReadError if it is not a plain file of at most MAX_FILE_BYTES."""
    try:
        if not path.is_file():  # a device or a pipe may never end
            what = "is not a plain file" if path.exists() else "does not exist"
            raise ReadError(f"{path} {what}; expected a file.")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise ReadError(f"{path} has {size:,} bytes; expected a robot file, at most {MAX_FILE_BYTES:,}.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"{path} cannot be read: {error}. Check the path and its permissions.") from None


def _missing_file_message(path: Path) -> str:
    """Return the message about a missing file: the file that was probably meant, or what the folder contains."""
    folder = path.parent
    if not folder.is_dir():
        return f'{path} does not exist, as there is no folder "{folder}". Check the path.'
    robots = _robot_files(folder)
    stems = {Path(name).stem: name for name in reversed(robots)}
    close = get_close_matches(path.stem, stems, n=1)
    if close:
        return f'{path} does not exist. Did you mean "{folder / stems[close[0]]}"?'
    held = f"holds {', '.join(robots[:20])}" if robots else f"holds no file ending in {', '.join(SUFFIXES)}"
    return f"{path} does not exist: the folder {folder.absolute()} {held}. Check the path."


def _robot_files(folder: Path) -> list[str]:
    try:
        return sorted(p.name for p in folder.iterdir() if p.suffix.lower() in SUFFIXES)
    except OSError:  # a folder without permission to list it
        return []
