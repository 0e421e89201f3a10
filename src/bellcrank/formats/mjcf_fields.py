"""Treatment of every field of a compiled MuJoCo model: read, reported, or without effect on the motion.

MuJoCo's motion depends on the compiled model and on nothing else, so a field in none of the three tables is a feature
unknown to this version: if such a field is not zero, the report warns. Tests compare the tables with the installed
MuJoCo, and docs/mjcf.md with its XML schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import cache
from typing import Any

import numpy as np

from bellcrank.model.parts import ReportLine

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
