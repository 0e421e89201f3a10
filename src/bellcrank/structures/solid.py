"""Flexible bodies from a tetrahedral mesh: scikit-fem assembles stiffness and mass, and bc.flexible reduces them.

Displacements are quadratic in every tetrahedron: linear ones are far too stiff against bending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, sequence_elements
from bellcrank.errors import ModelError, brief
from bellcrank.lazy_import import optional_import
from bellcrank.structures.beam import Array
from bellcrank.structures.matrices import flexible
from bellcrank.structures.modes import Moments
from bellcrank.structures.reduction import check_interfaces
from bellcrank.structures.section import Material, check_material
from bellcrank.structures.skin import surface_triangles


@explain_argument_errors
def solid(
    mesh: Any, material: Material, interfaces: Mapping[str, Callable[[Array], Array] | Any], modes: int = 8, **more: Any
) -> Moments:
    """Return a flexible body of tetrahedra; Builder.flexible places it in a mechanism.

    Parameters
    ----------
    mesh : skfem.MeshTet, or tuple of (points, cells)
        Points (n, 3) in metres, and cells (m, 4), as meshio has them.
    material : Material
        The material.
    interfaces : mapping of str to callable
        {name: function of the positions of all nodes, (n, 3), that returns a mask of those that move as one rigid
        piece}. The first is the reference, which the body's frame moves with.
    modes : int
        As in bc.flexible.
    **more
        Other arguments of bc.flexible.

    Returns
    -------
    Moments
        The reduced structure.

    Raises
    ------
    ModelError
        If an argument is invalid.
    """
    fem = optional_import("skfem", "mesh", "a mesh of tetrahedra")
    checked_mesh = _mesh(fem, mesh)
    check_material("solid", material)
    if material.nu == 0.5:
        raise ModelError("solid: nu is 0.5: an incompressible material is infinitely stiff here; expected less.")
    K, M, nodes = _assemble(fem, checked_mesh, material)
    check_interfaces("solid", interfaces, "function of places")
    chosen_nodes = {name: _chosen_nodes(name, choice, nodes) for name, choice in interfaces.items()}
    body = flexible(K, M, nodes, chosen_nodes, modes, **more)
    return replace(body, cells=surface_triangles(nodes, _surface(checked_mesh)))


def _surface(mesh: Any) -> Array:
    """Return the triangles of its boundary, (k, 3) corners, counter-clockwise from outside."""
    facets = mesh.boundary_facets()
    corners, inside = mesh.facets[:, facets], mesh.p[:, mesh.t[:, mesh.f2t[0, facets]]].mean(axis=1)
    a, b, c = (mesh.p[:, x] for x in corners)
    outwards = np.einsum("in,in->n", np.cross(b - a, c - a, axis=0), a - inside) > 0.0
    return np.asarray(np.where(outwards, corners, corners[::-1]).T)


def _mesh(fem: Any, given: Any) -> Any:
    if isinstance(given, fem.MeshTet):
        mesh = given
    else:
        try:
            elements: Any = sequence_elements(given)
            points, cells = elements
            points, cells = np.asarray(points, dtype=float), np.asarray(cells, dtype=int)
            if points.ndim != 2 or cells.ndim != 2 or points.shape[1] != 3 or cells.shape[1] != 4:
                raise ValueError
            if cells.min(initial=0) < 0 or cells.max(initial=-1) >= len(points):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"solid: mesh is {brief(given)}; expected an skfem.MeshTet, or points (n, 3) and cells (m, 4)."
            ) from None
        mesh = fem.MeshTet(points.T, cells.T)
    used = np.unique(mesh.t)
    if not len(used) or len(used) < mesh.p.shape[1]:
        raise ModelError(f"solid: {mesh.p.shape[1] - len(used)} points of the mesh belong to no tetrahedron.")
    a, b, c, d = (mesh.p[:, corner] for corner in mesh.t)
    volume = np.einsum("in,in->n", np.cross(b - a, c - a, axis=0), d - a) / 6
    flat = np.abs(volume) <= 1e-12 * np.ptp(mesh.p) ** 3
    if flat.any():
        raise ModelError(f"solid: tetrahedron {int(np.argmax(flat))} is flat; expected a volume. Mesh it again.")
    return mesh


def _assemble(fem: Any, mesh: Any, material: Material) -> tuple[Any, Any, Array]:
    """Return K and M with three displacements per node, and the nodes: corners, then centres of edges."""
    helpers = optional_import("skfem.helpers", "mesh", "a mesh of tetrahedra")
    basis = fem.Basis(mesh, fem.ElementVector(fem.ElementTetP2()))
    shear = material.G
    spread = material.E * material.nu / ((1 + material.nu) * (1 - 2 * material.nu))

    def stiffness(u: Any, v: Any, w: Any) -> Any:
        a, b = helpers.sym_grad(u), helpers.sym_grad(v)
        return 2 * shear * helpers.ddot(a, b) + spread * np.einsum("ii...", a) * np.einsum("ii...", b)

    def mass(u: Any, v: Any, w: Any) -> Any:
        return material.density * helpers.dot(u, v)

    dofs = np.hstack([basis.nodal_dofs, basis.edge_dofs]).T.ravel()  # x y z of each node in order
    K, M = (fem.BilinearForm(form).assemble(basis).tocsr()[dofs][:, dofs].tocsc() for form in (stiffness, mass))
    return K, M, np.ascontiguousarray(basis.doflocs[:, dofs[::3]].T)


def _chosen_nodes(name: Any, choice: Any, nodes: Array) -> Any:
    if not callable(choice):
        return choice
    try:
        mask = np.asarray(choice(nodes))
    except Exception as error:
        raise ModelError(f'solid: interface "{name}" failed: {type(error).__name__}: {error}.') from error
    if mask.shape != (len(nodes),) or mask.dtype != bool:
        raise ModelError(
            f'solid: interface "{name}" gives {brief(mask)}; expected a boolean for each of the {len(nodes)} places, '
            "true if it belongs to the interface, such as lambda p: p[:, 0] < 1e-6."
        )
    if not mask.any():
        raise ModelError(f'solid: interface "{name}" has no nodes: the mesh has none there.')
    return np.flatnonzero(mask).tolist()
