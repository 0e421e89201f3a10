"""Code generators: from graphs to machine code, source text and modules for CPUs, GPUs, C and WebAssembly."""
