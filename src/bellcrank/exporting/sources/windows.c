/* What a DLL for 64-bit Windows needs beside its functions, so that no library of the compiler's has to be built for it:
 * a place to begin, where nothing is to be done, and what large frames of the stack call before they are used. */
int DllMainCRTStartup(void *module, unsigned int reason, void *more);

int DllMainCRTStartup(void *module, unsigned int reason, void *more)
{
    (void)module; (void)reason; (void)more;
    return 1;
}

/* Windows adds pages to a stack only where the next one is touched, so a frame of rax bytes touches each on its way down.
 * All registers stay as they were. */
__asm__(
    ".globl ___chkstk_ms\n"
    "___chkstk_ms:\n"
    "    pushq %rax\n"
    "    pushq %rdx\n"
    "    leaq 24(%rsp), %rdx\n" /* where the stack ended before the call */
    "    jmp 2f\n"
    "1:  subq $4096, %rdx\n"
    "    orb $0, (%rdx)\n"
    "    subq $4096, %rax\n"
    "2:  cmpq $4096, %rax\n"
    "    ja 1b\n"
    "    subq %rax, %rdx\n"
    "    orb $0, (%rdx)\n"
    "    popq %rdx\n"
    "    popq %rax\n"
    "    ret\n");
