"""C99 code generation: one function for one state, for external compilers."""
