"""The cockpit's page without a server: static files; the machine runs in the browser.

The page is the one that `bellcrank drive` serves. It talks to a worker, line.js, which normally keeps the connection to
the server. Here the worker contains the machine (sources/line.js) as WebAssembly, the ground that it digs (ground.js),
automatic pilots (pilots.js) and the recording for a replay (record.js), and sends the same messages. Features that need
a server are missing: other methods, record formats except csv, and the user's own pilots, which are Python.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bellcrank.cockpit import scene_poses
from bellcrank.cockpit.machines import Machine, generic
from bellcrank.cockpit.session import Session, Settings
from bellcrank.errors import InputError, brief
from bellcrank.exporting import webassembly
from bellcrank.exporting.compilers import SOURCES
from bellcrank.exporting.export_content import Export, export_content
from bellcrank.ground.contact import GroundContact
from bellcrank.ground.field import TASKS
from bellcrank.ground.soils import SOILS
from bellcrank.model import Mechanism
from bellcrank.quoting import stem
from bellcrank.record.contents import plain
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import RunArguments
from bellcrank.sim.settings import Solver

STATIC = Path(scene_poses.__file__).with_name("static")
SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'"
)
# Replacements in the files of the page. Addresses become relative, as the folder may be served from anywhere.
TEXT_REPLACEMENTS = {
    "index.html": {
        'href="/cockpit.css"': 'href="cockpit.css"',
        'src="/cockpit.js"': 'src="cockpit.js"',
        "<title>": f'<meta http-equiv="Content-Security-Policy" content="{SECURITY_POLICY}">\n<title>',
    },
    "cockpit.js": {'new Worker("/line.js"': 'new Worker("line.js"'},
    "cockpit.css": {},
}
SOIL_CONSTANTS = ("density", "cohesion", "phi", "delta", "adhesion", "unit_weight", "slopes")
OWN_SCRIPTS = ("line.js", "ground.js", "contact.js", "pilots.js", "record.js")  # in the folder sources
README = """# {name}

A page that drives {name}. The machine runs in the browser; no server computes anything. Any web server can host these
files. To open the page on this computer:

    python3 -m http.server --bind 127.0.0.1 --directory .

(Browsers do not load modules from a file:// address.)
"""


class NullDrive:
    """Placeholder for the drive of a session that is never run; the page begins with a running one."""

    def snapshot(self) -> SimpleNamespace:
        """Return the status of the page's own drive at its start."""
        return SimpleNamespace(status="running")

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


def machine_of(thing: Any) -> Machine:
    """Return `thing` as a Machine of the cockpit; a Mechanism gets a slider for every joint."""
    if isinstance(thing, Machine):
        return thing
    if isinstance(thing, Mechanism):
        return generic(thing)
    raise InputError(
        f"to page: got {brief(thing)}; expected a Machine (bellcrank.cockpit.machines: a system with its levers), or a "
        "Mechanism, which gets a slider for every joint."
    )


def page_files(machine: Machine, solver: Solver) -> dict[str, bytes]:
    """Return the files of the page of `machine` by name, with these `solver` settings."""
    m = machine.mechanism
    form = "projected" if m.loops else solver.form
    step = solver.step if solver.step is not None else 1.0 / machine.rate
    settings = Solver(chosen_integrator(machine, solver), step, method=solver.method, form=form)
    simulator = Simulator(machine.system, solver=settings)
    content = export_content(simulator, (), m.name, settings, has_start=True)
    poses = getattr(scene_poses.pose_kernel(m), "graph")  # noqa: B009 - a kernel, annotated as a function
    page, own_scripts = page_texts(), {name: (SOURCES / name).read_text("utf-8") for name in OWN_SCRIPTS}
    # Avoids the page's own names.
    file_stem = m.name if f"{stem(m.name)}.js".lower() not in {*page, *own_scripts} else f"{m.name}_"
    module = webassembly.wasm_files(Export(file_stem, {"poses": poses}, content.stepper, content.columns))
    data_files = {name: data for name, data in module.items() if not name.endswith(".d.ts")}
    welcome = plain(worker_data(machine, simulator, 1.0 / step))
    texts = page | own_scripts
    texts["line.js"] = own_scripts["line.js"].replace("MACHINE", stem(file_stem))
    texts["welcome.json"] = json.dumps(welcome, allow_nan=False, separators=(",", ":"))
    texts["README.md"] = README.format(name=stem(m.name))
    return data_files | {name: text.encode() for name, text in texts.items()}


def chosen_integrator(machine: Machine, solver: Solver) -> str:
    """Return the integrator of `machine`, unless `solver` names another than the default."""
    return machine.integrator if solver.integrator == Solver().integrator else solver.integrator


def page_texts() -> dict[str, str]:
    """Return the files of the page by name, with the replacements in TEXT_REPLACEMENTS."""
    page_files = dict[str, str]()
    for name, changes in TEXT_REPLACEMENTS.items():
        if not (STATIC / name).exists():
            raise InputError(f"to page: the page is not built ({name} is missing); in Bellcrank's folder: make page.")
        text = (STATIC / name).read_text("utf-8")
        for old, new in changes.items():
            if text.count(old) != 1:
                raise InputError(
                    f"to page: {name} has {old!r} {text.count(old)} times, expected once; rebuild the page."
                )
            text = text.replace(old, new)
        page_files[name] = text
    return page_files


def worker_data(machine: Machine, simulator: Simulator, rate: float) -> dict[str, Any]:
    """Return the data for the worker: a server's welcome message, and the initial state of the machine.

    Parameters
    ----------
    machine
        Machine of the page.
    simulator
        Its simulator.
    rate
        Steps per second.
    """
    s = machine.system
    session = Session(machine, cast("Any", lambda *given: NullDrive()), Settings(rate, simulator.integrator.name))
    current_settings = session.current_settings() | {"pilot": ""}
    choices = {"rate": [rate], "integrator": [simulator.integrator.name], "method": ["auto"]}
    pilots = numeric_pilots(machine)
    welcome = session.welcome() | {"pilots": list(pilots), "handle": "", "formats": ["csv"], "choices": choices}
    given = RunArguments(s, machine.start, None, None, None, None, None, None)
    y = simulator.dynamics.initial_state(simulator.dynamics.checked_start(given.y, given.parameters))[0]
    columns = list(simulator.dynamics.columns)
    return {
        "welcome": welcome, "settings": current_settings, "start": [float(x) for x in np.asarray(y)],
        "outputs": [columns.index(name) for name in s.outputs], "nq": machine.mechanism.nq,
        "lengths": [list(s.parameters).index(name) for name in machine.mechanism.parameters],
        "pilots": pilots, "site": site_data(machine.contact) if machine.contact and machine.trace else None,
    }  # fmt: skip


def numeric_pilots(machine: Machine) -> dict[str, Any]:
    """Return the pilots of `machine` that are described by numbers; those written in Python are left out."""
    pilots = {name: make() for name, make in machine.pilots.items()}
    return {name: getattr(pilot, "plain") for name, pilot in pilots.items() if hasattr(pilot, "plain")}  # noqa: B009


def site_data(contact: GroundContact) -> dict[str, Any]:
    """Return bucket, soils and tasks of the ground `contact` in the form of the page's ground.js."""
    tool = contact.tool
    bucket = {"tool": asdict(tool), "tip": contact.tip, "level": contact.level, "heel": contact.heel}
    return {
        "contact": bucket | {"pointing": tool.teeth_direction(contact.tip)},
        "soils": {name: {key: getattr(soil, key) for key in SOIL_CONSTANTS} for name, soil in SOILS.items()},
        "tasks": {name: asdict(make()) for name, make in TASKS.items()},
    }
