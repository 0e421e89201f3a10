"""Component mode synthesis: from finite-element matrices to a few modes (Craig and Bampton).

Source: R. R. Craig and M. C. C. Bampton, Coupling of substructures for dynamic analyses, AIAA J. 6 (7), 1968. The
reference node is held, since the body's frame moves with it. The basis consists of the static shapes of unit
displacements of each other interface (which make loads there exact in statics) and the lowest modes with all interfaces
held. It is then made orthonormal: phi^T M phi = 1, phi^T K phi = omega^2.

Modes with the reference node held and everything else free are a poor basis for a boom that rotates about its pin and
is held by a cylinder half way: many are needed before it bends there as in reality. So modes may be chosen for supports
and carried masses. The body's frame stays at the reference node all the same: the rigid motion of the reference is
removed from each such mode, which costs no energy and which the joint provides anyway.

    u + R theta(u),   theta(u) = -(C R)^-1 C u      R: the rigid motions, C: rows of the supported displacements
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, brief, unknown, warn
from bellcrank.lazy_import import optional_import
from bellcrank.scalar import is_real, is_whole
from bellcrank.text_table import table

Array = np.ndarray[Any, Any]
# Eigenvalues below this part of the largest belong to motions without deformation.
RIGID_EIGENVALUE = 1e-12
# An asymmetry above this part of the diagonal elements in its row and column is not rounding.
ASYMMETRY_TOLERANCE = 1e-6
# m/s: no wave crosses a solid faster (diamond: 1.8e4), so that no structure has a frequency above this over its size. A
# coarse basis may give ten times as much.
MAX_WAVE_SPEED = 2e5
MIN_FREQUENCY = 1e-3  # Hz; the longest bridges have fifty times as much
# Part of the largest singular value of C R; a smaller one supports nothing.
LOOSE_TOLERANCE = 1e-9
UNCONNECTED_HINT = "Some of its displacements are not connected to anything: hold them, or take them out."


@dataclass(frozen=True)
class Reduction:
    """Modes, orthonormal in M: `shapes` (displacements x modes), and their accuracy."""

    shapes: Array
    omega: Array  # rad/s
    residual: Array  # energy norm of K phi - omega^2 M phi: 0 for an eigenvector of the whole structure
    effective: Array  # modes x 3: effective mass along x, y, z as a part of the total

    @property
    def hertz(self) -> Array:
        """Frequencies, Hz."""
        return self.omega / (2 * np.pi)

    def __str__(self) -> str:
        rows = [
            (str(i + 1), f"{f:.6g}", f"{r:.1e}", *(f"{100 * x:.1f}" for x in part))
            for i, (f, r, part) in enumerate(zip(self.hertz, self.residual, self.effective, strict=True))
        ]
        total = ("", "", "", *(f"{100 * x:.1f}" for x in self.effective.sum(0)))
        head = ("mode", "Hz", "residual", "mass x %", "y %", "z %")
        return table(head, [*rows, total], right=range(6))


@dataclass(frozen=True)
class Supports:
    """Supported structure: M, mass with carried loads; rigid, displacements x 6; rows, the six displacements held."""

    M: Any
    rigid: Array
    rows: Array

    def mass(self, shapes: Array) -> Array:
        """Return the mass matrix of these `shapes` as they move on the supports."""
        theta = -np.linalg.solve(self.rigid[self.rows], shapes[self.rows])
        moved = shapes + self.rigid @ theta
        return np.asarray(moved.T @ (self.M @ moved))


def checked_supports(
    M: Any, rigid: Array, first: Mapping[str, Mapping[int, int]], held: Mapping[str, Sequence[int]],
    loads: Mapping[str, float],
) -> Supports:  # fmt: skip
    """Check supports and loads of a structure.

    Parameters
    ----------
    M
        Mass matrix.
    rigid
        Rigid motions, displacements x 6.
    first
        Row of each direction of each interface.
    held
        Supported directions of each interface.
    loads
        Carried mass of each interface, kg.
    """
    for name in (*held, *loads):
        if name not in first:
            raise ModelError(f"flexible: {unknown('interface', name, first)}")
    missing = [f"{name} {d}" for name, directions in held.items() for d in directions if d not in first[name]]
    if missing:
        raise ModelError(f"flexible: supports hold {', '.join(missing)}, excluded by directions; expected 0 to 5.")
    rows = np.array([first[name][d] for name, directions in held.items() for d in directions], dtype=int)
    size = np.linalg.svd(rigid[rows] / np.maximum(np.abs(rigid).max(axis=0), 1e-300), compute_uv=False)
    if len(rows) != 6 or size[-1] < LOOSE_TOLERANCE * size[0]:
        raise ModelError(
            f"flexible: supports hold {len(rows)} displacements; expected six that prevent every rigid motion, such "
            "as all of one interface, or a hinge and a strut."
        )
    M = M.copy()
    for name, mass in loads.items():
        if not 0.0 <= mass < np.inf:
            raise ModelError(f'flexible: the load on "{name}" is {mass!r}; expected kilograms.')
        for d in {0, 1, 2} & set(first[name]):
            M[first[name][d], first[name][d]] += mass
    return Supports(M, rigid, rows)


def frequencies(K: Array, M: Array, held: Sequence[int] = ()) -> Array:
    """Return the natural frequencies (rad/s) of `K` and `M` with the displacements `held`; 0 for rigid motions."""
    free = np.setdiff1d(np.arange(len(K)), list(held))
    return np.sqrt(eigenmodes(K[np.ix_(free, free)], M[np.ix_(free, free)])[0])


def reduce_structure(
    K: Any,
    M: Any,
    held: Sequence[int],
    interface: Sequence[int],
    modes: int,
    rigid: Array | None = None,
    supported: Supports | None = None,
    below: float = np.inf,
) -> Reduction:
    """Reduce a structure to modes.

    Parameters
    ----------
    K, M
        Stiffness and mass, dense or scipy.sparse.
    held
        Displacements of the reference node.
    interface
        Displacements of the other nodes to which something will be attached.
    modes
        Number of modes in addition to the shapes of the interface.
    rigid
        Translations along x, y and z, displacements x 3.
    supported
        Supports and loads for which shapes are chosen.
    below
        Keep only shapes with frequencies below this on these supports, Hz.
    """
    K, M = _checked_symmetric("stiffness", K), _checked_symmetric("mass", M)
    n = K.shape[0]
    free = np.setdiff1d(np.arange(n), list(held))
    inner = np.setdiff1d(free, list(interface))
    interface_rows = np.array(list(interface), dtype=int)
    if not 0 <= modes <= len(inner):
        raise ModelError(f"modes is {modes}; expected 0 to {len(inner)}, the number of inner displacements.")
    columns = []
    if len(interface_rows):
        shape = np.zeros((n, len(interface_rows)))
        shape[interface_rows, range(len(interface_rows))] = 1.0
        if len(inner):
            shape[inner] = -_solve(_submatrix(K, inner, inner), to_dense(_submatrix(K, inner, interface_rows)))
        columns.append(shape)
    if modes:
        shape = np.zeros((n, modes))
        shape[inner] = _lowest_modes(_submatrix(K, inner, inner), _submatrix(M, inner, inner), modes)
        columns.append(shape)
    if not columns:
        raise ModelError("no degree of freedom is left: no other interface and no modes. Ask for modes.")
    T = np.hstack(columns)
    T = T @ _shapes_below(T.T @ (K @ T), T.T @ (M @ T) if supported is None else supported.mass(T), below)
    square, mixed = eigenmodes(T.T @ (K @ T), T.T @ (M @ T))
    if square[0] <= RIGID_EIGENVALUE * square[-1]:
        raise ModelError(
            f"{np.sum(square <= RIGID_EIGENVALUE * square[-1])} of the modes are rigid although the reference is held: "
            "part of the structure is not connected to it. Check the stiffness matrix, and which node is the reference."
        )
    omega, shapes = np.sqrt(square), T @ mixed
    return Reduction(shapes, omega, *_quality(K, M, shapes, omega, free, rigid))


def check_selection(where: str, modes: Any, below: Any) -> None:
    """Raise an error unless `modes` is a whole number from 0 and `below` a number; `where` begins the message."""
    if not is_whole(modes) or modes < 0:
        raise ModelError(f"{where}: modes is {brief(modes)}; expected a whole number from 0.")
    if not is_real(below):
        raise ModelError(f"{where}: below is {brief(below)}; expected a frequency in Hz.")


def check_interfaces(where: str, interfaces: Any, meaning: str) -> None:
    """Raise an error unless `interfaces` is a mapping with entries of that `meaning`; `where` begins the message."""
    if not isinstance(interfaces, Mapping) or not interfaces:
        raise ModelError(
            f"{where}: interfaces is {brief(interfaces)}, no interfaces; expected {{name: {meaning}}}, the reference "
            "first."
        )


def check_units(omega: Array, size: float) -> None:
    """Raise an error if the lowest frequency of `omega` (rad/s) is too high for that `size` (m); warn if too low."""
    lowest, most = float(np.min(omega)) / (2 * np.pi), MAX_WAVE_SPEED / size
    if lowest > most:
        raise ModelError(
            f"the lowest frequency is {lowest:.3g} Hz, which nothing of {size:.3g} m has (steel: {5e3 / size:.2g} Hz "
            "at most); expected metres, N/m and kg. Check the units of both matrices (mm and tonnes?)."
        )
    if lowest < MIN_FREQUENCY:
        warn(
            f"the lowest frequency of this structure of {size:.3g} m is {lowest:.3g} Hz, a period of "
            f"{1 / lowest / 3600:.3g} hours: it would not carry itself. Expected metres, Pa or N/m, and kg: is its "
            "length in millimetres, or its stiffness in other units?"
        )


def _shapes_below(K: Array, M: Array, below: float) -> Array:
    """Return those combinations of the shapes whose frequencies are below that many Hz."""
    square, mixed = eigenmodes(K, M)
    keep = np.sqrt(square) <= 2 * np.pi * below
    if not keep.any():
        raise ModelError(f"the lowest frequency is {np.sqrt(square[0]) / (2 * np.pi):.4g} Hz, and below is {below:g}.")
    return mixed[:, keep]


def _quality(
    K: Any, M: Any, shapes: Array, omega: Array, free: Array, rigid: Array | None
) -> tuple[Array, Array]:  # fmt: skip
    """Return residual and effective mass of each mode; the reference node is held by forces outside of the balance."""
    imbalance = (K @ shapes - M @ shapes * omega**2)[free]
    energy = np.einsum("ij,ij->j", imbalance, _solve(_submatrix(K, free, free), imbalance))
    residual = np.sqrt(np.abs(energy)) / omega
    if rigid is None:
        return residual, np.zeros((len(omega), 3))
    total = np.einsum("ij,ij->j", rigid, M @ rigid)
    return residual, (shapes.T @ (M @ rigid)) ** 2 / total


def is_sparse(A: Any) -> bool:
    """Return whether `A` is a scipy.sparse matrix."""
    return hasattr(A, "tocsc")


def to_dense(A: Any) -> Array:
    """Return `A` as a dense array."""
    return np.asarray(A.toarray() if is_sparse(A) else A, dtype=float)


def _submatrix(A: Any, rows: Array, columns: Array) -> Any:
    return A.tocsr()[rows].tocsc()[:, columns] if is_sparse(A) else A[np.ix_(rows, columns)]


def _lowest_modes(K: Any, M: Any, modes: int) -> Array:
    """Return the eigenvectors of the lowest eigenvalues; for a sparse pair by Lanczos' method, shifted to zero."""
    if not is_sparse(K) or modes > K.shape[0] // 2:
        return eigenmodes(to_dense(K), to_dense(M))[1][:, :modes]
    linear = optional_import("scipy.sparse.linalg", "flexible", "a sparse structure")
    try:
        square, X = linear.eigsh(K, k=modes, M=M, sigma=0.0)
    except (RuntimeError, linear.ArpackError) as error:
        raise ModelError(f"the modes of the sparse structure were not found: {error}. {UNCONNECTED_HINT}") from None
    return np.asarray(X[:, np.argsort(square)])


def eigenmodes(K: Array, M: Array) -> tuple[Array, Array]:
    """Return the eigenvalues omega^2 and eigenvectors, orthonormal in `M`, of `K` and `M`; empty for empty matrices."""
    if not len(K):
        return np.zeros(0), np.zeros((0, 0))
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(M)[0])
        raise ModelError(
            f"the mass matrix is not positive definite: its least eigenvalue is {least:.3g}. Every displacement needs "
            "mass, also rotations of nodes. Add it, or take such displacements out."
        ) from None
    inverse = np.linalg.inv(L)
    square, X = np.linalg.eigh(inverse @ K @ inverse.T)
    if square[0] < -1e-9 * square[-1]:
        raise ModelError(
            f"the stiffness matrix is indefinite: an eigenvalue of M^-1 K is {square[0]:.3g}, of {square[-1]:.3g} at "
            "most. A real structure cannot release energy. Check its signs and boundary conditions."
        )
    return np.maximum(square, 0.0), inverse.T @ X


def _checked_symmetric(what: str, A: Any) -> Any:
    A = A.tocsc() if is_sparse(A) else np.asarray(A, dtype=float)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ModelError(f"the {what} matrix has the shape {A.shape}; expected a square.")
    if not np.all(np.isfinite(A.data if is_sparse(A) else A)):
        raise ModelError(f"the {what} matrix holds values that are not finite; expected numbers.")
    diagonal_roots = np.sqrt(np.abs(A.diagonal()))
    scale = 1.0 / np.where(diagonal_roots > 0.0, diagonal_roots, diagonal_roots.max(initial=0.0) or 1.0)
    asymmetry = A - A.T
    scaled = asymmetry.multiply(scale[:, None]).multiply(scale) if is_sparse(A) else asymmetry * scale[:, None] * scale
    if float(abs(scaled).max()) > ASYMMETRY_TOLERANCE:
        raise ModelError(
            f"the {what} matrix is not symmetric: elements differ by {float(abs(asymmetry).max()):.3g}. Was only one "
            "half written?"
        )
    return (A + A.T) / 2


def _solve(A: Any, B: Array) -> Array:
    try:
        if is_sparse(A):
            linear = optional_import("scipy.sparse.linalg", "flexible", "a sparse structure")
            return np.asarray(linear.splu(A.tocsc()).solve(B))
        return np.asarray(np.linalg.solve(A, B))
    except (np.linalg.LinAlgError, RuntimeError):
        raise ModelError(
            f"the stiffness matrix is singular although all interfaces are held. {UNCONNECTED_HINT}"
        ) from None
