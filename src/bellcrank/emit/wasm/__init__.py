"""Graphs and programs as WebAssembly, by the LLVM that compiles them for this computer."""
