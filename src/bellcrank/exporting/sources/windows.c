/* Functions that a DLL for 64-bit Windows needs besides its own, so that no library of the compiler has to be built: an
 * entry point, which has nothing to do, and the stack probe that functions with large stack frames call. */
int DllMainCRTStartup(void *module, unsigned int reason, void *more);

int DllMainCRTStartup(void *module, unsigned int reason, void *more)
{
    (void)module; (void)reason; (void)more;
    return 1;
}

/* Stack probe: Windows extends a stack by one page when the next page is accessed, so all pages of a frame of rax bytes
 * are accessed in sequence. All registers are preserved. */
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
