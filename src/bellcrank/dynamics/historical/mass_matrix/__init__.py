"""Eight algorithms for the mass matrix, after A. Fijany.

A. Fijany, Serial and parallel computation of Kane's equations for multibody dynamics, Jet Propulsion Laboratory, 1989.
The slides carry no numbers; their titles are quoted instead.

    oke   Kane's equation as it stands: every element a sum over the bodies both joints carry       O(n^3)
    vke   the same, summed from the tip by column                                                   O(n^2)
    oneb  Newton-Euler, one unit acceleration at a time, body frames, centres of mass               O(n^2)
    vneb  the same about the joints (first and second moments) in one fixed frame                   O(n^2)
    ocrb  composite bodies by mass, centre and central inertia, body frames                         O(n^2)
    vcrb  composite bodies by first and second moments; body frames first, then one fixed frame     O(n^2)
    vneb_parallel, vcrb_parallel   the variants by recursive doubling, with a span of O(log n)

All of them use dynamics/ltl_factorisation.py; those in the frame of the first body share fixed_frame.py, which also
has the recursive doubling of the parallel ones.
"""
