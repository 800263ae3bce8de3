/* Answers `cpuid` as a processor without AVX-512, AMX and AVX-VNNI would, where a library traps instead of asking.

   held_to_avx2.py writes `int3; nop` over `cpuid` (two bytes each) in a copy of a library. This is loaded before
   that copy: its handler asks the processor, and clears what belongs to those. Libraries ask once, when they start. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

/* Leaf 7, subleaf 0: F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS,
   VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8. Subleaf 1: AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA;
   AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10. */
#define BIT(n) (1u << (n))
static const unsigned EBX0 = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
static const unsigned ECX0 = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14);
static const unsigned EDX0 = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);
static const unsigned EAX1 = BIT(4) | BIT(5) | BIT(21) | BIT(23);
static const unsigned EDX1 = BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19);

static void answer(int number, siginfo_t *info, void *context)
{
    greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (*(const unsigned char *)(at[REG_RIP] - 1) != 0xCC) abort();
    unsigned leaf = at[REG_RAX], subleaf = at[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    if (leaf == 7 && subleaf == 0) b &= ~EBX0, c &= ~ECX0, d &= ~EDX0;
    if (leaf == 7 && subleaf == 1) a &= ~EAX1, d &= ~EDX1;
    if (leaf == 0x14 || leaf == 0x24 || leaf == 0x1D || leaf == 0x1E) a = b = c = d = 0; /* AVX10, AMX */
    at[REG_RAX] = a, at[REG_RBX] = b, at[REG_RCX] = c, at[REG_RDX] = d;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
}
