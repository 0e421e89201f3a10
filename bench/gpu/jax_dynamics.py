"""Forward dynamics as usually written in JAX: 6x6 matrices, one state, vmap over the batch, jit around it.

Composite rigid bodies for M, recursive Newton-Euler for the bias, a Cholesky solve. All joints have the same axis (z).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.model import Mechanism


def forward_dynamics(mechanism: Mechanism, dtype: str) -> Callable[..., Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # otherwise float32 is multiplied with fewer bits
    import jax.numpy as jnp

    links = mechanism.tree.links
    constants = [_constants(link) for link in links]
    gravity = np.array([0, 0, 0, *(-float(x) for x in _triple(mechanism.tree.gravity))])

    def cross(w: Any) -> Any:
        z = jnp.zeros((), dtype)
        return jnp.array([[z, -w[2], w[1]], [w[2], z, -w[0]], [-w[1], w[0], z]])

    def transform(R: Any, p: Any) -> Any:
        """Return the transform of motions from the parent's frame; R and p are the child's pose in it."""
        E = R.T
        return jnp.block([[E, jnp.zeros((3, 3), dtype)], [-E @ cross(p), E]])

    def motion_cross(v: Any) -> Any:
        w, u = cross(v[:3]), cross(v[3:])
        return jnp.block([[w, jnp.zeros((3, 3), dtype)], [u, w]])

    def one(q: Any, v: Any, tau: Any) -> Any:
        n = len(links)
        X, S, V, A, f = [], [], [], [], []
        for i, link in enumerate(links):
            R0, p0, axis, inertia, scale, offset = constants[i]
            x = q[link.q_index[0]] * scale + offset
            if axis[:3].any():
                c, s = jnp.cos(x), jnp.sin(x)
                turn = jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]], dtype)
                R, p = jnp.asarray(R0, dtype) @ turn, jnp.asarray(p0, dtype)
            else:
                R, p = jnp.asarray(R0, dtype), jnp.asarray(p0 + 0.0, dtype) + x * jnp.asarray(R0[:, 2], dtype)
            X.append(transform(R, p))
            S.append(jnp.asarray(axis * scale, dtype))
            k, I = link.v_index[0], jnp.asarray(inertia, dtype)
            up_v = V[link.parent] if link.parent >= 0 else jnp.zeros(6, dtype)
            up_a = A[link.parent] if link.parent >= 0 else jnp.asarray(gravity, dtype)
            vJ = S[i] * v[k]
            V.append(X[i] @ up_v + vJ)
            A.append(X[i] @ up_a + motion_cross(V[i]) @ vJ)
            f.append(I @ A[i] - motion_cross(V[i]).T @ (I @ V[i]))
        Ic = [jnp.asarray(constants[i][3], dtype) for i in range(n)]
        M = jnp.zeros((mechanism.nv, mechanism.nv), dtype)
        bias = jnp.zeros(mechanism.nv, dtype)
        for link in links:
            for k, x in zip(link.v_index, link.passive(list(q), list(v)), strict=True):
                bias = bias.at[k].add(-x)
        for i in reversed(range(n)):
            bias = bias.at[links[i].v_index[0]].add(S[i] @ f[i])
            if links[i].parent >= 0:
                f[links[i].parent] = f[links[i].parent] + X[i].T @ f[i]
                Ic[links[i].parent] = Ic[links[i].parent] + X[i].T @ Ic[i] @ X[i]
        for i in range(n):
            F, j = Ic[i] @ S[i], i
            a = links[i].v_index[0]
            M = M.at[a, a].add(S[i] @ F + float(links[i].armature))
            while links[j].parent >= 0:
                F, j = X[j].T @ F, links[j].parent
                b = links[j].v_index[0]
                h = S[j] @ F
                M = M.at[a, b].add(h).at[b, a].add(h)
        return jnp.linalg.solve(M, (tau - bias)[:, None])[:, 0]

    return jax.jit(jax.vmap(one))


def _triple(v: Any) -> tuple[float, float, float]:
    return float(v.x), float(v.y), float(v.z)


def _constants(link: Any) -> tuple[Any, ...]:
    """Return pose at zero, axis, 6x6 inertia about the frame, and the coupling to another joint's coordinate."""
    from bellcrank.spatial.vector import Mat, Vec

    one = Mat(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
    R, p = (link.placement + link.kind.transform([0.0])).pose(one, Vec(0.0, 0.0, 0.0))
    R0 = np.array([_triple(R.a), _triple(R.b), _triple(R.c)])
    (S,) = link.kind.subspace([0.0])
    axis = np.array([*_triple(S.ang), *_triple(S.lin)])
    m, h = float(link.inertia.m), np.array(_triple(link.inertia.h))
    hx = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
    I = np.array([[float(x) for x in row] for row in link.inertia.I.rows])
    mimic = link.joint.mimic
    scale, offset = (1.0, 0.0) if mimic is None else (float(mimic.multiplier), float(mimic.offset))
    return R0, np.array(_triple(p)), axis, np.block([[I, hx], [hx.T, m * np.eye(3)]]), scale, offset
