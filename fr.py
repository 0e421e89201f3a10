import bellcrank as bc, numpy as np
from bellcrank.cockpit import stage
for n in ("excavator","excavator_linkage"):
    m=getattr(bc.zoo,n)()
    print(n,[b.name for b in m.bodies]); 
    for j in m.joints: print('  joint',j.name,j.kind,j.parent,j.child,np.round(j.point,3),j.axis)
    for f in m.frames.values(): print('  frame',f.name,f.body,np.round(f.point,3))
    d=stage.described(m,np.asarray(m.neutral()),True)
    print(d['frames'],d['up'],d['centre'],d['radius'],d.keys())
    for b in m.bodies: print(b.name,b.mass,np.round(b.com,2))
