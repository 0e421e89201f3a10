"""Content digests: hash everything that a value, a function or an object consists of, equal in every process.

digests            values, containers, arrays, objects
function_digests   functions, classes and modules, with the globals and closures that they use
libraries          tell Python and installed libraries, identified by version, from code identified by its text;
                   their files and versions; one digest of many files
"""

from bellcrank.content_digest.digests import ContentDigest, UnidentifiedError, content_digest

__all__ = ["ContentDigest", "UnidentifiedError", "content_digest"]
