"""The one representation of loops: statements that every target prints, and what is translated to them.

Recursions over identical bodies, linear systems, columns of matrices, and graphs with many identical operations become
the same few statements (statements.py); see `Graph.loops`.
"""
