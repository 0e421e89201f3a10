"""WebAssembly target: graphs and programs compiled by the same LLVM that compiles for the host."""
