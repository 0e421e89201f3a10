"""Content digests: a hash of everything that a value, a function or an object consists of, equal in every process.

digests     values, containers, arrays, objects
functions   functions, classes and modules, with the globals and closures that they use
code_facts  what follows from a code object alone, found once
libraries   whether code belongs to Python or to an installed library, and to which version of it
"""

from bellcrank.content_digest.digests import ContentDigest, UnidentifiedError, content_digest

__all__ = ["ContentDigest", "UnidentifiedError", "content_digest"]
