/* The arithmetic of a Transformer that translates on a CPU: int8 products, attention, softmax.

   All of it is in kernel.h, which is compiled once for AVX-512 with VNNI, once for AVX2, and once
   for any machine; the best that the machine has is chosen when the library is loaded. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#endif

#include "thread_pool.h"
#include "layout.h"

#ifdef X86
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,avx2")
#define NAME(x) x##_vnni
#define VNNI 1
#include "kernel.h"
#undef VNNI
#undef NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define NAME(x) x##_avx2
#define AVX2 1
#include "kernel.h"
#undef AVX2
#undef NAME
#pragma GCC pop_options
#endif

#define NAME(x) x##_plain
#include "kernel.h"
#undef NAME

typedef void (*Encode)(const Model *, Scratch *, int, const int *, const int *, uint16_t **);
typedef void (*Step)(const Model *, Scratch *, const StepInput *, StepOutput *);

static Encode used_encode;
static Step used_step;

int dragoman_use_instruction_set(int most) {
    /* Use the best that the machine has and that is not above `most`, and say which it is:
       2 VNNI, 1 AVX2, 0 any machine. */
    int best = 0;
#ifdef X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = 1;
    if (best && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) best = 2;
#endif
    if (best > most) best = most;
#ifdef X86
    if (best == 2) { used_encode = encode_vnni; used_step = step_vnni; return best; }
    if (best == 1) { used_encode = encode_avx2; used_step = step_avx2; return best; }
#endif
    used_encode = encode_plain; used_step = step_plain;
    return 0;
}

int dragoman_interface_version(void) { return 3; } /* the same as in kernel_library.py */

Scratch *dragoman_new_scratch(int helpers) {
    Scratch *scratch = calloc(1, sizeof(Scratch));
    if (scratch && helpers > 0) scratch->pool = start_pool(helpers);
    return scratch;
}

void dragoman_free_scratch(Scratch *scratch) {
    if (scratch->pool) stop_pool(scratch->pool);
    for (int i = 0; i < BUFFERS; i++) free(scratch->buffer[i]);
    free(scratch);
}

void dragoman_encode(const Model *m, Scratch *s, int sentences, const int *lengths, const int *ids,
                     uint16_t **source_caches) {
    used_encode(m, s, sentences, lengths, ids, source_caches);
}

void dragoman_step(const Model *m, Scratch *s, const StepInput *in, StepOutput *found) {
    used_step(m, s, in, found);
}
