"""Target CPU: kernels, run loops and real-time loops for one processor, from the LLVM IR of emit/llvm/."""
