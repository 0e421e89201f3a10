"""The public names with their types. Written from the table in __init__.py by tests/generated.py."""

from typing import Any, overload

from bellcrank import actuators as actuators
from bellcrank import control as control
from bellcrank import excavators as excavators
from bellcrank import forces as forces
from bellcrank import identify as identify
from bellcrank import papers as papers
from bellcrank import zoo as zoo
from bellcrank.build.compilation import Where as Where
from bellcrank.build.equations import equations as equations
from bellcrank.build.function_compilation import compile as compile
from bellcrank.build.kernels import kernel as kernel
from bellcrank.build.processor_assignment import ProcessorAssignment as ProcessorAssignment
from bellcrank.build.schedules import schedule as schedule
from bellcrank.dynamics import methods as methods
from bellcrank.emit.cpu.kernel import Kernel as Kernel
from bellcrank.errors import BellcrankError as BellcrankError
from bellcrank.errors import CompileError as CompileError
from bellcrank.errors import InputError as InputError
from bellcrank.errors import ModelError as ModelError
from bellcrank.errors import ReadError as ReadError
from bellcrank.errors import TraceError as TraceError
from bellcrank.exporting.export import export as export
from bellcrank.forces.latch import attach as attach
from bellcrank.forces.latch import release as release
from bellcrank.formats import Builder as Builder
from bellcrank.formats import from_dh as from_dh
from bellcrank.formats import from_saha as from_saha
from bellcrank.formats import from_wong as from_wong
from bellcrank.formats import read as read
from bellcrank.formats.collisions import collisions as collisions
from bellcrank.graph import Graph as Graph
from bellcrank.identify.design_optimisation import Minimum as Minimum
from bellcrank.identify.design_optimisation import minimize as minimize
from bellcrank.identify.output_error import fit as fit
from bellcrank.identify.parameter_search import Fit as Fit
from bellcrank.interpolation import interp as interp
from bellcrank.model import Mechanism as Mechanism
from bellcrank.model.pinocchio_order import pinocchio_order as pinocchio_order
from bellcrank.parameters import parameter as parameter
from bellcrank.record import Record as Record
from bellcrank.record import load_record as load_record
from bellcrank.registration import register as register
from bellcrank.scalar import acos as acos
from bellcrank.scalar import asin as asin
from bellcrank.scalar import atan2 as atan2
from bellcrank.scalar import clip as clip
from bellcrank.scalar import cos as cos
from bellcrank.scalar import exp as exp
from bellcrank.scalar import fabs as fabs
from bellcrank.scalar import floor as floor
from bellcrank.scalar import log as log
from bellcrank.scalar import maximum as maximum
from bellcrank.scalar import minimum as minimum
from bellcrank.scalar import quantised as quantised
from bellcrank.scalar import sin as sin
from bellcrank.scalar import sqrt as sqrt
from bellcrank.scalar import tan as tan
from bellcrank.scalar import tanh as tanh
from bellcrank.scalar import where as where
from bellcrank.scheduling import Machine as Machine
from bellcrank.scheduling import Schedule as Schedule
from bellcrank.sim.input_histories import History as History
from bellcrank.sim.input_histories import history as history
from bellcrank.sim.linear.equilibrium import Equilibrium as Equilibrium
from bellcrank.sim.linear.equilibrium import EquilibriumError as EquilibriumError
from bellcrank.sim.linear.equilibrium import equilibrium as equilibrium
from bellcrank.sim.linear.linearisation import Linear as Linear
from bellcrank.sim.linear.linearisation import linearize as linearize
from bellcrank.sim.program.events import Event as Event
from bellcrank.sim.realtime.realtime_drive import Drive as Drive
from bellcrank.sim.run.adjoint import Adjoint as Adjoint
from bellcrank.sim.run.adjoint import Gradient as Gradient
from bellcrank.sim.run.adjoint import gradient as gradient
from bellcrank.sim.run.simulator import Simulator as Simulator
from bellcrank.sim.run.simulator import simulate as simulate
from bellcrank.sim.settings import Saving as Saving
from bellcrank.sim.settings import Solver as Solver
from bellcrank.sim.stepper.stepper import Stepper as Stepper
from bellcrank.sim.stepper.stepper_factory import stepper as stepper
from bellcrank.sim.system.sampling import Sampled as Sampled
from bellcrank.sim.system.systems import System as System
from bellcrank.sim.system.systems import system as system
from bellcrank.structures.matrices import flexible as flexible
from bellcrank.structures.matrix_files import read_matrix as read_matrix
from bellcrank.structures.mbdyn import read_fem as read_fem
from bellcrank.structures.mbdyn import write_fem as write_fem
from bellcrank.structures.section import Material as Material
from bellcrank.structures.section import Profile as Profile
from bellcrank.structures.section import Section as Section
from bellcrank.structures.sid import read_sid as read_sid
from bellcrank.structures.sid import write_sid as write_sid
from bellcrank.structures.solid import solid as solid
from bellcrank.studies.sampling_plans import log_uniform as log_uniform
from bellcrank.studies.sampling_plans import normal as normal
from bellcrank.studies.sampling_plans import uniform as uniform
from bellcrank.studies.study import Study as Study
from bellcrank.studies.study import study as study
from bellcrank.version import __version__ as __version__

@overload
def drive(mechanism: Mechanism | System, rate: float = ..., seconds: None = ..., **settings: Any) -> Drive: ...
@overload
def drive(mechanism: Mechanism | System, rate: float, seconds: float, **settings: Any) -> Record: ...
@overload
def drive(mechanism: Mechanism | System, rate: float = ..., *, seconds: float, **settings: Any) -> Record: ...
