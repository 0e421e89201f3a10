"""Report on parts of a compiled MuJoCo model that are not in the mechanism.

MuJoCo's motion depends on the compiled model and on nothing else. Three tables list its fields: those that are read,
reported, or without effect on the motion. A field in none of them is a feature unknown to this version: if such a field
is not zero, the report warns. Tests compare the tables with the installed MuJoCo, and docs/mjcf.md with its XML schema.

Each part has a line, which is a warning if MuJoCo's motion differs because of it. There is one function for each topic
of REPORTED_FIELDS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import cache
from typing import Any

import numpy as np

from bellcrank.formats.mjcf_model import TENDON, ModelFlags, contributing_actuators, element_list, report_names
from bellcrank.model.parts import ReportLine

FREE, BALL = 0, 1  # of mjtJoint
NO_MOTION = "not used: they do not change the motion"
Topic = Callable[[Any, ModelFlags], Iterator[ReportLine]]
NONE, FIXED, AFFINE, MUSCLE = 0, 0, 1, 2  # of mjtBias and mjtGain
# Patterns of fnmatch. Fields of `option` begin with "opt.".
READ_FIELDS = """
nq nv nbody njnt neq nsite names name_bodyadr name_jntadr name_siteadr name_eqadr opt.gravity opt.disableflags
qpos0 qpos_spring ngravcomp flg_gravcomp
body_parentid body_jntnum body_jntadr body_pos body_quat body_ipos body_iquat body_mass body_inertia body_gravcomp
jnt_type jnt_qposadr jnt_dofadr jnt_bodyid jnt_limited jnt_actfrclimited jnt_pos jnt_axis jnt_stiffness jnt_range
jnt_actfrcrange jnt_actgravcomp jnt_actuatorid dof_frictionloss dof_armature dof_damping actuator_armature
actuator_damping eq_type eq_obj1id eq_obj2id eq_objtype eq_active0 eq_data site_bodyid site_pos site_quat
"""
# Topic of the report (mjcf_report.py) -> the fields that it covers.
REPORTED_FIELDS = {
    "geoms": """ngeom npair nexclude name_geomadr name_pairadr name_excludeadr pair_* exclude_* flg_surfacevel
        flg_adhesion geom_type geom_contype geom_conaffinity geom_condim geom_bodyid geom_dataid geom_priority
        geom_solmix geom_solref geom_solimp geom_size geom_pos geom_quat geom_friction geom_margin geom_gap
        geom_surfacevel geom_adhesion nhfield* hfield_* name_hfieldadr opt.o_*""",
    "fluid": "geom_fluid opt.wind opt.density opt.viscosity",
    "limits": "jnt_margin jnt_solref jnt_solimp",
    "friction": "dof_solref dof_solimp",
    "springs": "jnt_stiffnesspoly dof_dampingpoly jnt_springyield jnt_plasticadr nplastic actuator_dampingpoly",
    "equalities": "eq_solref eq_solimp",
    "tendons": "ntendon nwrap wrap_* name_tendonadr tendon_*",
    "actuators": "nu nactuator na nout name_actuatoradr actuator_* opt.disableactuator",
    "flexes": "nflex flex_* name_flexadr",
    "plugins": "nplugin* plugin plugin_* name_pluginadr body_plugin geom_plugin",
    "mocap": "nmocap body_mocapid",
    "sleep": "tree_sleep_policy opt.sleep_tolerance opt.enableflags",
    "keys": "nkey key_* name_keyadr",
    "sensors": "nsensor* sensor_* name_sensoradr opt.magnetic",
    "custom": "nnumeric* ntext* ntuple* numeric_* text_* tuple_* name_numericadr name_textadr name_tupleadr *_user "
    "nuserdata",
    "pictures": "ncam cam_* name_camadr nlight light_* name_lightadr nskin* skin_* name_skinadr",
}
# Reason why no report line is needed -> the fields.
FIELDS_WITHOUT_EFFECT = {
    "colours, groups and shapes of pictures": """vis jnt_group geom_matid geom_group geom_castshadow geom_rgba
        site_type site_dataid site_matid site_group site_size site_rgba ntex* tex_* name_texadr nmat mat_*
        name_matadr""",
    "follows from other fields": """stat body_rootid body_weldid body_dofnum body_dofadr body_treeid body_geomnum
        body_geomadr body_simple body_sameframe body_subtreemass body_invweight0 body_margin body_contype
        body_conaffinity body_bvh* bvh_* oct_* dof_bodyid dof_jntid dof_parentid dof_treeid dof_Madr dof_simplenum
        dof_invweight0 dof_M0 dof_length tree_bodyadr tree_bodynum tree_dofadr tree_dofnum geom_sameframe geom_aabb
        geom_rbound site_sameframe B_* M_* D_* mapM2* mapD2* ten_J_* flexedge_* flexvert_* efm*""",
    "sizes and places in memory": """nbvh* noct ntree nM nB nC nD nflex?* nefm* nJ* nuser_* nnames* npaths paths nemax
        njmax nconmax npolygonmax nmeshdegmax nhistory narena nbuffer buffer names_map signature""",
    "meshes, which are in the inertia and shape of their geoms": "nmesh* mesh_* name_meshadr",
    "MuJoCo's integrator and solver": """opt.timestep opt.impratio opt.tolerance opt.ls_tolerance opt.noslip_*
        opt.ccd_* opt.integrator opt.cone opt.jacobian opt.solver opt.iterations opt.ls_iterations opt.sdf_*
        opt.apirate""",
}
OPTION_STRUCT = "opt"  # the field that is a struct of numbers with effect


def report_lines(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    """Yield the report lines of all topics for the compiled model `m` with `flags`."""
    yield from flags.lines
    for lines in TOPICS.values():
        yield from lines(m, flags)


def _geoms(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    if not m.ngeom:
        return
    pairs = _touching_pairs(m)
    geoms = f"{m.ngeom} geoms"
    if "contact" in flags.off:
        yield ReportLine(geoms, "contact is disabled; their inertia is in the bodies")
    elif not pairs and not m.npair:
        yield ReportLine(geoms, "none can touch another; their inertia is in the bodies")
    else:
        given = f" and {m.npair} explicit pairs of geoms" if m.npair else ""
        less = f", {m.nexclude} excluded" if m.nexclude else ""
        how = "bodies pass through each other. bc.collisions(file, mechanism) makes shapes and contacts of geoms"
        yield ReportLine(geoms, f"contacts of {pairs} pairs of bodies{given}{less} are not used: {how}", "warning")


def _touching_pairs(m: Any) -> int:
    """Return how many pairs of bodies may touch, by MuJoCo's rules for masks, welds and parents."""
    rows = np.unique(np.stack([m.geom_bodyid, m.geom_contype, m.geom_conaffinity], axis=1), axis=0)
    body, kind, affinity = rows.T
    touch = ((kind[:, None] & affinity[None, :]) | (kind[None, :] & affinity[:, None])) != 0
    weld = m.body_weldid[body]
    above = m.body_weldid[m.body_parentid[weld]]
    touch &= weld[:, None] != weld[None, :]
    for one, other in ((above[:, None], weld[None, :]), (weld[:, None], above[None, :])):
        touch &= (one != other) | (other == 0) | (one == 0)
    a, b = np.nonzero(np.triu(touch | touch.T))
    pairs = {(min(x, y), max(x, y)) for x, y in zip(body[a].tolist(), body[b].tolist(), strict=True)}
    excluded = {(s >> 16, s & 0xFFFF) for s in m.exclude_signature.tolist()}
    return len(pairs - excluded - {(y, x) for x, y in excluded})


def _fluid(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    opt = m.opt
    if (opt.density or opt.viscosity) and flags.passive:
        wind = f", wind {opt.wind.tolist()}" if np.any(opt.wind) else ""
        shapes = "; geoms with a fluid shape" if np.any(m.geom_fluid) else ""
        text = f"density {opt.density:g}, viscosity {opt.viscosity:g}{wind}{shapes}: drag and lift are not used"
        yield ReportLine("fluid", text, "warning")


def _limits(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    names = report_names(m, "joint")
    limited = [k for k in range(m.njnt) if m.jnt_limited[k]]
    held = "limit" in flags.off
    level = "note" if held else "warning"
    balls = [names[k] for k in limited if m.jnt_type[k] == BALL]
    others = [names[k] for k in limited if m.jnt_type[k] > BALL]
    if balls:
        yield ReportLine(element_list("joint", balls), "range of a ball joint: not used", level)
    if others:
        why = "as in MuJoCo, where a flag disables limits" if held else "bc.forces.joint_stops(mechanism) makes stops"
        text = f"range kept as limits, and nothing stops the joint there: {why}. Margin and softness are not used"
        yield ReportLine(element_list("joint", others), text, level)


def _friction(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    if "friction" in flags.off:
        return
    names = report_names(m, "joint")
    rubbing = [k for k in range(m.njnt) if m.dof_frictionloss[m.jnt_dofadr[k]]]
    free = [names[k] for k in rubbing if m.jnt_type[k] == FREE]
    if free:
        text = "frictionloss of a free joint acts along the body's axes here, along the world's in MuJoCo"
        yield ReportLine(element_list("joint", free), text, "warning")
    if rubbing:
        text = "frictionloss is a ramp through zero speed; MuJoCo's is a soft constraint "
        text += "(solreffriction, solimpfriction)"
        yield ReportLine(element_list("joint", [names[k] for k in rubbing]), text, "note")


def _springs(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    """Report springs and dampers that are not linear."""
    not_linear = "is not linear: its higher terms are not used"
    for field, kind, rows, what, switch in (
        ("jnt_stiffnesspoly", "joint", range(m.njnt), f"stiffness {not_linear}", "spring"),
        ("jnt_springyield", "joint", range(m.njnt), "springyield: plastic yield is not used", "spring"),
        ("dof_dampingpoly", "joint", m.jnt_dofadr, f"damping {not_linear}", "damper"),
        ("actuator_dampingpoly", "actuator", range(len(m.name_actuatoradr)), f"damping {not_linear}", "damper"),
    ):
        values = getattr(m, field, None)
        if values is None or switch in flags.off:
            continue
        elements = [name for name, row in zip(report_names(m, kind), rows, strict=True) if np.any(values[row])]
        if elements:
            yield ReportLine(element_list(kind, elements), what, "warning")


def _tendons(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    for i, name in enumerate(report_names(m, "tendon")):
        pulls = list(_tendon_forces(m, i, flags))
        text = f"{', '.join(pulls)} not used: what it pulls is missing" if pulls else "not used: it only measures"
        yield ReportLine(f'tendon "{name}"', text, "warning" if pulls else "note")


def _tendon_forces(m: Any, i: int, flags: ModelFlags) -> Iterator[str]:
    """Yield the forces and inertias of a tendon."""
    for what, field, switch in (
        ("stiffness", "tendon_stiffness", "spring"),
        ("nonlinear stiffness", "tendon_stiffnesspoly", "spring"),
        ("damping", "tendon_damping", "damper"),
        ("nonlinear damping", "tendon_dampingpoly", "damper"),
        ("frictionloss", "tendon_frictionloss", "friction"),
        ("range", "tendon_limited", "limit"),
        ("armature", "tendon_armature", ""),
    ):
        values = getattr(m, field, None)
        if values is not None and switch not in flags.off and np.any(values[i]):
            yield what
    for actuator in contributing_actuators(m, (TENDON,), i):
        yield f'armature and damping of actuator "{report_names(m, "actuator")[actuator]}"'


def _actuators(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    for i, name in enumerate(report_names(m, "actuator")):
        acts = _acts_without_control(m, i)
        group = int(m.actuator_group[i])
        off = "actuation" in flags.off or (0 <= group < 31 and bool(m.opt.disableactuator >> group & 1))
        text = "not used: its forces are yours to give, as tau or as an actuator of a system"
        if acts:
            text += "; it acts without a control, too"
        if off:
            text = "not used: it is disabled"
        yield ReportLine(f'actuator "{name}"', text, "warning" if acts and not off else "note")


def _acts_without_control(m: Any, i: int) -> bool:
    """Return whether an actuator exerts a force at zero control and activation."""
    plugin = getattr(m, "actuator_plugin", np.full(m.nu, -1))[i] >= 0
    return bool(m.actuator_biastype[i] != NONE or m.actuator_gaintype[i] not in (FIXED, AFFINE, MUSCLE) or plugin)


def _mocap(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    bodies = [name for name, k in zip(report_names(m, "body"), m.body_mocapid, strict=True) if k >= 0]
    if bodies:
        yield ReportLine(element_list("body", bodies), "mocap: stays where the file has it", "note")


def _sleep(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    if flags.sleep:
        yield ReportLine("sleep", "not used: bodies at rest are not taken out of the motion", "note")


def _custom(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    total = m.nnumeric + m.ntext + m.ntuple
    if total:
        yield ReportLine(f"{total} custom fields", NO_MOTION)
    sizes = [what for what in ("body", "jnt", "geom", "site", "actuator", "tendon") if getattr(m, f"nuser_{what}")]
    if sizes:
        yield ReportLine(f"user data of {', '.join(sizes)}", "not used: it does not change the motion")


def _pictures(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
    counts = {"cameras": m.ncam, "lights": m.nlight, "skins": m.nskin}
    text = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if text:
        yield ReportLine(text, NO_MOTION)


def _counted(field: str, what: str, outcome: str, level: str = "ok", switch: str = "") -> Topic:
    """Return a topic with one line for the elements that `field` counts, unless the flag `switch` disables them."""

    def lines(m: Any, flags: ModelFlags) -> Iterator[ReportLine]:
        if (count := getattr(m, field)) and switch not in flags.off:
            yield ReportLine(f"{count} {what}", outcome, level)

    return lines


TOPICS: dict[str, Topic] = {
    "geoms": _geoms,
    "fluid": _fluid,
    "limits": _limits,
    "friction": _friction,
    "springs": _springs,
    "equalities": _counted(
        "neq", "equalities", "held exactly: solref and solimp, which make them soft, are not used", "note", "equality"
    ),
    "tendons": _tendons,
    "actuators": _actuators,
    "flexes": _counted("nflex", "flexes", "not used: what bends between their bodies is missing", "warning"),
    "plugins": _counted("nplugin", "plugins", "not used: what they do to the motion is missing", "warning"),
    "mocap": _mocap,
    "sleep": _sleep,
    "keys": _counted("nkey", "keyframes", "not used: give states to runs yourself", "note"),
    "sensors": _counted("nsensor", "sensors", NO_MOTION),
    "custom": _custom,
    "pictures": _pictures,
}


def field_treatment(field: str) -> str:
    """Return the treatment of `field`: "read", "reported: TOPIC", "no effect: WHY", or "" for an unknown field."""
    treatments = {"read": READ_FIELDS}
    treatments |= {f"reported: {topic}": patterns for topic, patterns in REPORTED_FIELDS.items()}
    treatments |= {f"no effect: {why}": patterns for why, patterns in FIELDS_WITHOUT_EFFECT.items()}
    return next((name for name, patterns in treatments.items() if _pattern(patterns).fullmatch(field)), "")


def model_fields(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of every field of the compiled `model`."""
    for prefix, thing in (("", model), ("opt.", model.opt)):
        for name in dir(type(thing)):
            if name.startswith("_") or (not prefix and name == OPTION_STRUCT):
                continue
            value = getattr(thing, name)
            if not callable(value):
                yield prefix + name, value


def unknown_fields(model: Any, version: str) -> Iterator[ReportLine]:
    """Warn of fields of `model` that are in no table and not zero; `version` is that of MuJoCo."""
    for name, value in model_fields(model):
        if not field_treatment(name) and _is_nonzero(value):
            text = f"not known to this version of bellcrank, and not used: the motion may differ (MuJoCo {version})"
            yield ReportLine(f"MuJoCo's {name}", text, "warning")


def _is_nonzero(value: Any) -> bool:
    if isinstance(value, np.ndarray | int | float | bytes):
        return bool(np.any(np.asarray(value)) if not isinstance(value, bytes) else value.strip(b"\0"))
    return True  # a struct, whose content cannot be judged


@cache
def _pattern(patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns.split())))
