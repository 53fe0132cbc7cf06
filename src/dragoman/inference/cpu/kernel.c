/* The arithmetic of a Transformer that translates on a CPU: int8 products, attention, softmax.

   All of it is in kernel.h, which is compiled once for each instruction set; Python chooses one
   when it loads the library. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if __has_include(<avxvnniintrin.h>)
#define AVX_VNNI /* the compiler knows it */
#endif
#if defined(__linux__) && (__has_include(<amxint8intrin.h>) || __has_include(<amxintrin.h>)) /* GCC's, Clang's */
#define AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#include "platform.h"
#include "thread_pool.h"
#include "layout.h"

/* All functions between the two are compiled for these features, by GCC and by Clang. */
#define AS_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define BEGIN_TARGET(features) AS_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define END_TARGET AS_PRAGMA(clang attribute pop)
#else
#define BEGIN_TARGET(features) AS_PRAGMA(GCC push_options) AS_PRAGMA(GCC target(features))
#define END_TARGET AS_PRAGMA(GCC pop_options)
#endif

#define NAME(x) x##_plain
#include "kernel.h"
#undef NAME

#if defined(__x86_64__)
#define NAME(x) x##_sse2
#define SSE2
#define EVEN_AND_ODD
#include "kernel.h"
#undef EVEN_AND_ODD
#undef SSE2
#undef NAME

BEGIN_TARGET("avx2,fma")
#define NAME(x) x##_avx2
#define VECTOR_BITS 256
#define SIGN_MAGNITUDE
#include "kernel.h"
#undef SIGN_MAGNITUDE
#undef VECTOR_BITS
#undef NAME
END_TARGET

#ifdef AVX_VNNI
BEGIN_TARGET("avx2,fma,avxvnni")
#define NAME(x) x##_avx_vnni
#define VECTOR_BITS 256
#include "kernel.h"
#undef VECTOR_BITS
#undef NAME
END_TARGET
#endif

BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")
#define NAME(x) x##_avx512
#define VECTOR_BITS 512
#define SIGN_MAGNITUDE
#include "kernel.h"
#undef SIGN_MAGNITUDE
#undef VECTOR_BITS
#undef NAME
END_TARGET

BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#define NAME(x) x##_avx512_vnni
#define VECTOR_BITS 512
#include "kernel.h"
#undef VECTOR_BITS
#undef NAME
END_TARGET

#ifdef AMX
BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,amx-tile,amx-int8")
#define NAME(x) x##_amx
#define VECTOR_BITS 512
#define MATRIX_TILES
#include "kernel.h"
#undef MATRIX_TILES
#undef VECTOR_BITS
#undef NAME
END_TARGET
#endif
#endif

#if defined(__aarch64__)
#define NAME(x) x##_neon
#define NEON
#define EVEN_AND_ODD
#include "kernel.h"
#undef EVEN_AND_ODD
#undef NEON
#undef NAME

#ifdef __clang__
BEGIN_TARGET("dotprod")
#else
BEGIN_TARGET("arch=armv8.2-a+dotprod")
#endif
#define NAME(x) x##_neon_dotprod
#define NEON_DOTPROD 1
#include "kernel.h"
#undef NEON_DOTPROD
#undef NAME
END_TARGET

#ifdef __clang__
BEGIN_TARGET("dotprod,i8mm")
#else
BEGIN_TARGET("arch=armv8.2-a+dotprod+i8mm")
#endif
#define NAME(x) x##_neon_i8mm
#define NEON_DOTPROD 1
#define NEON_I8MM 1
#include "kernel.h"
#undef NEON_I8MM
#undef NEON_DOTPROD
#undef NAME
END_TARGET
#endif

#if defined(__wasm_simd128__)
#define NAME(x) x##_wasm_simd128
#define WASM
#define EVEN_AND_ODD
#include "kernel.h"
#undef EVEN_AND_ODD
#undef WASM
#undef NAME
#endif

/* --- which instruction sets the machine has --- */

static int has_plain(void) { return 1; }

#if defined(__x86_64__)
static int has_sse2(void) { return 1; } /* every one of them */

enum { EAX, EBX, ECX, EDX };

/* whether CPUID sets all `bits` of a register; their numbers are those of Intel's manual */
static int has_bits(unsigned leaf, unsigned subleaf, int which, unsigned bits) {
    unsigned registers[4] = {0};
    return __get_cpuid_count(leaf, subleaf, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX]) &&
           (registers[which] & bits) == bits;
}

/* whether the system keeps these registers of a thread while another one runs */
static int keeps_registers(unsigned states) {
    unsigned low, high;
    if (!has_bits(1, 0, ECX, 1u << 27)) return 0; /* OSXSAVE: there is XGETBV */
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & states) == states;
}

static int has_avx2(void) {
    return keeps_registers(0x6) && has_bits(1, 0, ECX, 1u << 28 | 1u << 12) && /* AVX, FMA */
           has_bits(7, 0, EBX, 1u << 5);
}

static int has_avx512(void) {
#ifndef __APPLE__ /* keeps them once a thread has used them, and says so only then */
    if (!keeps_registers(0xe6)) return 0;
#endif
    return has_avx2() && has_bits(7, 0, EBX, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31); /* F, DQ, BW, VL */
}

static int has_avx512_vnni(void) { return has_avx512() && has_bits(7, 0, ECX, 1u << 11); }

#ifdef AVX_VNNI
static int has_avx_vnni(void) {
    unsigned most, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 0, &most, &b, &c, &d) && most >= 1 && has_bits(7, 1, EAX, 1u << 4);
}
#endif

#ifdef AMX
/* Linux keeps the tiles of a process only if it has asked for that. */
static int has_amx(void) {
    const long ask = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
    return has_avx512_vnni() && has_bits(7, 0, EDX, 1u << 24 | 1u << 25) && /* AMX-TILE, AMX-INT8 */
           syscall(SYS_arch_prctl, ask, tile_data) == 0;
}
#endif
#endif

#if defined(__aarch64__)
static int has_neon(void) { return 1; } /* every one of them */

#if defined(__APPLE__)
static int has_neon_dotprod(void) { return 1; } /* every Mac with such a processor has it */
static int has_neon_i8mm(void) {
    int there = 0;
    size_t size = sizeof there;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &there, &size, NULL, 0) == 0 && there;
}
#elif defined(__linux__)
static int has_neon_dotprod(void) { return (getauxval(AT_HWCAP) >> 20) & 1; }
static int has_neon_i8mm(void) { return has_neon_dotprod() && ((getauxval(AT_HWCAP2) >> 13) & 1); }
#elif defined(_WIN32)
static int has_neon_dotprod(void) { return IsProcessorFeaturePresent(43); } /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
static int has_neon_i8mm(void) { return has_neon_dotprod() && IsProcessorFeaturePresent(66); } /* PF_ARM_V82_I8MM_… */
#else
static int has_neon_dotprod(void) { return 0; }
static int has_neon_i8mm(void) { return 0; }
#endif
#endif

#if defined(__wasm_simd128__)
static int has_wasm_simd128(void) { return 1; } /* or the module would not have been loaded */
#endif

/* the slowest first */
#ifdef AVX_VNNI
#define SETS_WITH_AVX_VNNI(X) X(avx_vnni)
#else
#define SETS_WITH_AVX_VNNI(X)
#endif
#ifdef AMX
#define SETS_WITH_AMX(X) X(amx)
#else
#define SETS_WITH_AMX(X)
#endif
#if defined(__x86_64__)
#define INSTRUCTION_SETS(X) X(plain) X(sse2) X(avx2) X(avx512) SETS_WITH_AVX_VNNI(X) X(avx512_vnni) SETS_WITH_AMX(X)
#elif defined(__aarch64__)
#define INSTRUCTION_SETS(X) X(plain) X(neon) X(neon_dotprod) X(neon_i8mm)
#elif defined(__wasm_simd128__)
#define INSTRUCTION_SETS(X) X(plain) X(wasm_simd128)
#else
#define INSTRUCTION_SETS(X) X(plain)
#endif

typedef struct {
    const char *name;
    int (*is_available)(void);
    void (*encode)(const Model *, Scratch *, int, const int *, const int *, uint16_t **);
    void (*step)(const Model *, Scratch *, const StepInput *, StepOutput *);
} InstructionSet;

#define ENTRY(x) {#x, has_##x, encode_##x, step_##x},
static const InstructionSet instruction_sets[] = {INSTRUCTION_SETS(ENTRY)};

static const InstructionSet *used = instruction_sets;

/* --- what Python calls --- */

EXPORTED int dragoman_interface_version(void) { return 4; } /* the same as in kernel_library.py */

/* the name of an instruction set that the kernel is compiled for, the slowest being 0; NULL: no more */
EXPORTED const char *dragoman_instruction_set(int number) {
    const int count = sizeof instruction_sets / sizeof *instruction_sets;
    return number < count ? instruction_sets[number].name : NULL;
}

EXPORTED int dragoman_has_instruction_set(int number) { return instruction_sets[number].is_available(); }

EXPORTED void dragoman_use_instruction_set(int number) { used = &instruction_sets[number]; }

EXPORTED int dragoman_used_instruction_set(void) { return (int)(used - instruction_sets); }

EXPORTED Scratch *dragoman_new_scratch(int helpers) {
    Scratch *scratch = calloc(1, sizeof(Scratch));
    if (scratch && helpers > 0) scratch->pool = start_pool(helpers);
    return scratch;
}

EXPORTED void dragoman_free_scratch(Scratch *scratch) {
    if (scratch->pool) stop_pool(scratch->pool);
    for (int i = 0; i < BUFFERS; i++) free_aligned(scratch->buffer[i]);
    free(scratch);
}

EXPORTED void dragoman_encode(const Model *m, Scratch *s, int sentences, const int *lengths, const int *ids,
                              uint16_t **source_caches) {
    used->encode(m, s, sentences, lengths, ids, source_caches);
}

EXPORTED void dragoman_step(const Model *m, Scratch *s, const StepInput *in, StepOutput *found) {
    used->step(m, s, in, found);
}
