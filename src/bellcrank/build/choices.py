"""Which method "auto" takes, where its graph is not wanted: found again on disk, so that nothing is traced for it."""

from __future__ import annotations

import json
from dataclasses import asdict

from bellcrank.build import factory_state
from bellcrank.build.graphs import Request, check, chosen, considered, fits, rolls
from bellcrank.dynamics import METHODS, Method, immobility, quantity
from bellcrank.emit import cache as store
from bellcrank.emit.cpu.host import host
from bellcrank.model import Mechanism

_known: dict[str, str] = {}  # methods by their keys, so that a second look is not at the disk


def method_for(mechanism: Mechanism, request: Request) -> Method:
    """The method that graphs.chosen takes on this computer."""
    check(mechanism, request)
    if quantity(request.quantity).inverts:
        immobility.check(mechanism)
    able = considered(mechanism, request)
    if len(able) == 1 and rolls(mechanism, request, able[0]):
        return able[0]
    if len(able) == 1:
        fits(mechanism, request.quantity, able[0])
        return able[0]
    if not factory_state.untouched():
        return chosen(mechanism, request)[0]
    h, asked = host(), json.dumps(asdict(request))
    here = (h.cpu, h.features, h.llvm, store.package_fingerprint(), *factory_state.key())
    name = store.key("method", mechanism.fingerprint, asked, *here)
    if name not in _known:
        if (found := store.load(f"{name}.json")) is not None:
            _known[name] = str(json.loads(found))
        else:
            _known[name] = chosen(mechanism, request)[0].name
            store.save(f"{name}.json", json.dumps(_known[name]).encode())
    return METHODS[_known[name]]
