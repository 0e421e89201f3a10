"""The cockpit's page without a server: static files, in which the machine runs in the browser itself.

The page is the one that `bellcrank drive` serves. It talks to a worker, line.js, which there keeps the line to the
server; here the worker has the machine (sources/line.js), as WebAssembly, the ground that it digs (ground.js), programs
that drive (pilots.js) and what is remembered for a replay (record.js), and says the same. What only a server can do is
not there: other methods, files of records but csv, and programs of one's own, which are Python.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.cockpit import stage
from bellcrank.cockpit.machines import Machine, generic
from bellcrank.cockpit.session import Session, Settings
from bellcrank.errors import InputError, brief
from bellcrank.exporting import wasm
from bellcrank.exporting.folder import write_folder
from bellcrank.exporting.things import Export, export_of
from bellcrank.ground.contact import GroundContact
from bellcrank.ground.soils import SOILS, NamedSoil
from bellcrank.ground.tasks import TASKS
from bellcrank.model import Mechanism
from bellcrank.quoting import stem
from bellcrank.record.contents import plain
from bellcrank.sim.arguments import Given
from bellcrank.sim.settings import Solver
from bellcrank.sim.simulator import Simulator

STATIC = Path(stage.__file__).with_name("static")
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'"
)
# In the files of the page: what is told apart here. Addresses are relative, for the folder may lie anywhere.
CHANGES = {
    "index.html": {
        'href="/cockpit.css"': 'href="cockpit.css"',
        'src="/cockpit.js"': 'src="cockpit.js"',
        "<title>": f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<title>',
    },
    "cockpit.js": {'new Worker("/line.js"': 'new Worker("line.js"'},
    "cockpit.css": {},
}
OWN = ("line.js", "ground.js", "contact.js", "pilots.js", "record.js")  # in the folder sources
README = """# {name}

A page that drives {name}; the machine runs in the browser, and no server takes part. Any web server can keep these
files; to look at it here:

    python3 -m http.server --bind 127.0.0.1 --directory .

(From a file:// address browsers load no modules.)
"""


class Nothing:
    """What stands for the drive of a session that nobody runs."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


def machine_of(thing: Any) -> Machine:
    if isinstance(thing, Machine):
        return thing
    if isinstance(thing, Mechanism):
        return generic(thing)
    raise InputError(
        f"to page: got {brief(thing)}; expected a Machine (bellcrank.cockpit.machines: a system, and its levers), or a "
        "Mechanism, which gets a slider for every joint."
    )


def write_page(thing: Any, path: Path, solver: Solver) -> Path:
    return write_folder(path, files(machine_of(thing), solver))


def files(machine: Machine, solver: Solver) -> dict[str, bytes]:
    m = machine.mechanism
    form = "projected" if m.loops else solver.form
    step = solver.step if solver.step is not None else 1.0 / machine.rate
    how = Solver(chosen_integrator(machine, solver), step, method=solver.method, form=form)
    simulator = Simulator(machine.system, solver=how)
    found = export_of(simulator, (), m.name, how)
    poses = getattr(stage.pose_kernel(m), "graph")  # noqa: B009 - a kernel, said to be a function
    page, own = page_texts(), {name: (wasm.SOURCES / name).read_text("utf-8") for name in OWN}
    called = m.name if f"{stem(m.name)}.js".lower() not in {*page, *own} else f"{m.name}_"  # "ground" is ours already
    module = wasm.files(Export(called, {"poses": poses}, found.stepper, found.columns))
    made = {name: data for name, data in module.items() if not name.endswith(".d.ts")}
    welcome = plain(described(machine, simulator, 1.0 / step))
    texts = (
        page
        | own
        | {
            "line.js": own["line.js"].replace("MACHINE", stem(called)),
            "welcome.json": json.dumps(welcome, allow_nan=False, separators=(",", ":")),
            "README.md": README.format(name=stem(m.name)),
        }
    )
    return made | {name: text.encode() for name, text in texts.items()}


def chosen_integrator(machine: Machine, solver: Solver) -> str:
    """The machine's own, unless another than the usual one was asked for."""
    return machine.integrator if solver.integrator == Solver().integrator else solver.integrator


def page_texts() -> dict[str, str]:
    """The files of the page, with what is other here."""
    found = dict[str, str]()
    for name, changes in CHANGES.items():
        if not (STATIC / name).exists():
            raise InputError(f"to page: the page is not built ({name} is missing); in Bellcrank's folder: make page.")
        text = (STATIC / name).read_text("utf-8")
        for old, new in changes.items():
            if text.count(old) != 1:
                raise InputError(f"to page: {name} has {old!r} {text.count(old)} times, expected once; make page anew.")
            text = text.replace(old, new)
        found[name] = text
    return found


def described(machine: Machine, simulator: Simulator, rate: float) -> dict[str, Any]:
    """What the worker must know: what a server says to a page that has just come, and where the machine begins."""
    s = machine.system
    session = Session(machine, lambda *given: Nothing(), Settings(rate, simulator.integrator.name))
    now = session.now() | {"pilot": ""}
    only = {"rate": [rate], "integrator": [simulator.integrator.name], "method": ["auto"]}
    pilots = plain_pilots(machine)
    welcome = session.welcome() | {"pilots": list(pilots), "handle": "", "formats": ["csv"], "choices": only}
    given = Given(s, machine.start, None, None, None, None, None, None)
    y = simulator.dynamics.started(simulator.dynamics.closure.checked(given.y, given.parameters))[0]
    columns = list(simulator.dynamics.columns)
    return {
        "welcome": welcome, "settings": now, "start": [float(x) for x in np.asarray(y)],
        "outputs": [columns.index(name) for name in s.outputs], "nq": machine.mechanism.nq,
        "lengths": [list(s.parameters).index(name) for name in machine.mechanism.parameters],
        "pilots": pilots, "site": site_of(machine.contact) if machine.contact and machine.trace else None,
    }  # fmt: skip


def plain_pilots(machine: Machine) -> dict[str, Any]:
    """Programs that say in numbers what they do; others are Python, and stay where it is."""
    made = {name: make() for name, make in machine.pilots.items()}
    return {name: getattr(pilot, "plain") for name, pilot in made.items() if hasattr(pilot, "plain")}  # noqa: B009


def site_of(contact: GroundContact) -> dict[str, Any]:
    """The bucket, the soils and the jobs, as the ground in the page takes them."""
    tool = contact.tool
    own = {"tool": asdict(tool), "tip": contact.tip, "level": contact.level, "heel": contact.heel}
    return {
        "contact": own | {"pointing": tool.pointing(contact.tip)},
        "soils": {name: plain_soil(soil) for name, soil in SOILS.items()},
        "tasks": {name: asdict(make()) for name, make in TASKS.items()},
    }


def plain_soil(soil: NamedSoil) -> dict[str, Any]:
    names = ("density", "cohesion", "phi", "delta", "adhesion", "unit_weight", "slopes")
    return {name: getattr(soil, name) for name in names}
