"""Nine algorithms for the mass matrix, after A. Fijany.

A. Fijany, Serial and parallel computation of Kane's equations for multibody dynamics, Jet Propulsion Laboratory, 1989.
The slides carry no numbers; their titles are quoted instead.

    kane.py              oke   Kane's equation as it stands: every element a sum over the bodies of both joints  O(n^3)
                         vke   the same, summed from the tip by column                                           O(n^2)
    newton_euler.py      oneb  one unit acceleration at a time, body frames, centres of mass                     O(n^2)
                         vneb  the same about the joints (first and second moments) in one fixed frame           O(n^2)
    walker_orin.py       ocrb  composite bodies by mass, centre and central inertia, body frames                 O(n^2)
    composite_bodies.py  vcrb  the same by first and second moments; body frames first, then one fixed frame     O(n^2)
    oke_parallel, vneb_parallel, vcrb_parallel   the same by recursive doubling, with a span of O(log n)

The parallel ones project their equations onto the frame of the first body ("base"), of the last one ("end"), or leave
them in the frame of every body ("body", body_frames.py).

All of them use dynamics/ltl_factorisation.py; those in the frame of the first body share fixed_frame.py, which also
has the recursive doubling of the parallel ones.

vneb_column_parallel and vcrb_column_parallel have one processor for each column: the algorithms in the rows "PPA" of
the slide "Comparison of Two Classes of Serial and Parallel Algorithms", for n processors. Recursive doubling computes
the values of the bodies, one body per processor; then every processor computes its column of the matrix, one row after
the other. The printed costs show which values are computed by doubling: (27m + 18a) log n is a product of two
rotations, (48m + 63a) log n includes the moments of the composite bodies. The costs of a row, 39m + 38a and 9m + 8a,
are those of the serial algorithms; f"V({i})[{j}]" is row j of column i, computed by the processor of body i. The
experiment in papers/fijany.py counts and schedules them; they are not methods of the table, since the serial variants
are cheaper on one core and the parallel ones on many.
"""
