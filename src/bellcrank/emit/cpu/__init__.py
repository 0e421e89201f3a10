"""LLVM IR for this processor, from graphs and the loops of programs: scalar code and vector code."""
