/* Runs some steps of a machine on an emulated Cortex-M and measures them. The output has one line each, in hexadecimal
 * digits and in the order of bytes in memory: status; instructions of a step; bytes of stack of a step; numbers of the
 * state. The generated file model.h defines the sizes and functions of the machine. */
#include "model.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SYSTICK ((volatile uint32_t *)0xE000E010u) /* control, reload, current */
#define FPU (*(volatile uint32_t *)0xE000ED88u)
#define NANOSECONDS 40u /* of a tick of the board's 25 MHz; QEMU takes one for each instruction */
#define PAINTED 65536u /* bytes of the stack that are examined */

extern uint32_t top;
static NUMBER s[N_S], u[N_U + 1], p[N_P + 1];

static int asked(int what, const void *with)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void hex(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    char text[3] = {0, 0, 0};
    size_t k;
    for (k = 0; k < size; ++k) {
        text[0] = "0123456789abcdef"[bytes[k] >> 4];
        text[1] = "0123456789abcdef"[bytes[k] & 15];
        (void)asked(4, text);
    }
    (void)asked(4, "\n");
}

static uint32_t ticks;

/* Takes steps and counts their ticks. The counter has 24 bits, so it is reset before each step. */
static int __attribute__((noinline)) stepped(int count)
{
    int status = 0;
    ticks = 0;
    while (count-- > 0 && status == 0) {
        SYSTICK[2] = 0;
        status = MODEL_ADVANCE(s, u, p);
        ticks += 0xFFFFFFu - SYSTICK[2];
    }
    return status;
}

static uint32_t __attribute__((noinline)) used(void)
{
    const unsigned char *here = (const unsigned char *)__builtin_frame_address(0) - PAINTED, *at = here;
    while (at < here + PAINTED && *at == 0xA5) {
        ++at;
    }
    return (uint32_t)(here + PAINTED - at);
}

static void __attribute__((noinline)) paint(void)
{
    memset((unsigned char *)__builtin_frame_address(0) - PAINTED, 0xA5, PAINTED - 256u);
}

void start(void)
{
    int status;
    uint32_t bytes, instructions;
    (void)u; (void)p;
    FPU |= 0xFu << 20;
    __asm__ volatile("dsb\n isb");
    MODEL_REST(s, u, p);
    {
        const NUMBER inputs[N_U + 1] = MODEL_INPUTS;
        NUMBER next[N_S];
        memcpy(u, inputs, N_U * sizeof(NUMBER));
        MODEL_BEGIN(s, u, p, next);
        memcpy(s, next, sizeof(next));
    }
    SYSTICK[1] = 0xFFFFFFu;
    SYSTICK[0] = 5u;
    paint();
    status = stepped(1);
    bytes = used();
    if (status == 0) {
        status = stepped(N_STEPS - 1);
    }
    instructions = (uint32_t)((uint64_t)ticks * NANOSECONDS / (N_STEPS - 1));
    hex(&status, sizeof(status));
    hex(&instructions, sizeof(instructions));
    hex(&bytes, sizeof(bytes));
    hex(s, sizeof(s));
    (void)asked(0x18, (const void *)0x20026);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {&top, (const void *)start};
