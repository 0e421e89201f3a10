"""LLVM IR of graphs and rolled loops, shared by the targets that LLVM compiles: cpu/, cores/, cuda/ and wasm.py."""
