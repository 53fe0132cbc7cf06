/* Products of int8: inputs are rounded and multiplied with packed weights. Included by kernel.h.

   An instruction set says how it stores inputs, what it adds to a vector of sums at a time, and how
   many rows and vectors of outputs make a tile, whose sums are held in registers. Sums are whole
   numbers, the same for every instruction set but for an offset. While a tile is computed, weights
   that will be needed next are prefetched. */

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline)) /* with all registers for itself */

/* --- vectors --- */

#if VECTOR_BITS == 512
#define VECTOR __m512i
#define LOAD(from) _mm512_loadu_si512(from)
#define STORE(to, vector) _mm512_storeu_si512(to, vector)
#define REPEAT(number) _mm512_set1_epi32(number)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define ADD(a, b) _mm512_add_epi32(a, b)
#define ADD_PAIRS(a, b) _mm512_madd_epi16(a, b)
#define ADD_16(a, b) _mm512_add_epi16(a, b)
#define ADD_BYTE_PAIRS(a, b) _mm512_maddubs_epi16(a, b)
#define ADD_BYTE_FOURS(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define NOT_ZERO(a) (uint64_t)(PARTS == 2 ? _mm512_test_epi64_mask(a, a) : _mm512_test_epi32_mask(a, a))
#elif VECTOR_BITS == 256
#define VECTOR __m256i
#define LOAD(from) _mm256_loadu_si256((const __m256i *)(from))
#define STORE(to, vector) _mm256_storeu_si256((__m256i *)(to), vector)
#define REPEAT(number) _mm256_set1_epi32(number)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define ADD(a, b) _mm256_add_epi32(a, b)
#define ADD_PAIRS(a, b) _mm256_madd_epi16(a, b)
#define ADD_16(a, b) _mm256_add_epi16(a, b)
#define ADD_BYTE_PAIRS(a, b) _mm256_maddubs_epi16(a, b)
#define ADD_BYTE_FOURS(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#define NOT_ZERO(a) (uint64_t)(PARTS == 2 \
    ? 15 & ~_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()))) \
    : 255 & ~_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, _mm256_setzero_si256()))))
#elif defined(NEON_DOTPROD)
#define VECTOR int32x4_t
#define LOAD(from) vreinterpretq_s32_s8(vld1q_s8(from))
#define STORE(to, vector) vst1q_s32(to, vector)
#define REPEAT(number) vdupq_n_s32(number)
#define ADD_BYTE_FOURS(sum, a, b) vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b))
#elif defined(NEON)
#define VECTOR int16x8_t
#define LOAD(from) vreinterpretq_s16_s8(vld1q_s8(from))
#define STORE(to, vector) vst1q_s32(to, vreinterpretq_s32_s16(vector))
#define REPEAT(number) vreinterpretq_s16_s32(vdupq_n_s32(number))
#define ADD(a, b) vreinterpretq_s16_s32(vaddq_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)))
#define ADD_PAIRS(a, b) \
    vreinterpretq_s16_s32(vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b)))
#define EVEN_BYTES(a) vshrq_n_s16(vshlq_n_s16(a, 8), 8)
#define ODD_BYTES(a) vshrq_n_s16(a, 8)
#elif defined(SSE2)
#define VECTOR __m128i
#define LOAD(from) _mm_loadu_si128((const __m128i *)(from))
#define STORE(to, vector) _mm_storeu_si128((__m128i *)(to), vector)
#define REPEAT(number) _mm_set1_epi32(number)
#define ADD(a, b) _mm_add_epi32(a, b)
#define ADD_PAIRS(a, b) _mm_madd_epi16(a, b)
#define EVEN_BYTES(a) _mm_srai_epi16(_mm_slli_epi16(a, 8), 8)
#define ODD_BYTES(a) _mm_srai_epi16(a, 8)
#elif defined(WASM)
#define VECTOR v128_t
#define LOAD(from) wasm_v128_load(from)
#define STORE(to, vector) wasm_v128_store(to, vector)
#define REPEAT(number) wasm_i32x4_splat(number)
#define ADD(a, b) wasm_i32x4_add(a, b)
#define ADD_PAIRS(a, b) wasm_i32x4_dot_i16x8(a, b)
#define EVEN_BYTES(a) wasm_i16x8_shr(wasm_i16x8_shl(a, 8), 8)
#define ODD_BYTES(a) wasm_i16x8_shr(a, 8)
#endif

#define LANES (int)(sizeof(VECTOR) / 4)

/* --- inputs --- */

/* Rows of inputs are stored in one of four ways. */
#if defined(SIGN_MAGNITUDE)
/* Of each four the sizes, and then four bytes that are all ones for a negative input, whose weights
   are multiplied inverted, bit by bit. -w - 1 is one too little, so that the sum of the sizes of the
   negative ones has to be added. Sizes are at most 127, and the sum of two products fits in 16 bits.
   So does that of four, two of each of two fours, where their sizes sum up to at most 256. */
#define PARTS 2
#define INPUT_OFFSET 0
#elif defined(EVEN_AND_ODD)
/* Of each four the first and the third in 16 bits each, and then the others. */
#define PARTS 2
#define INPUT_OFFSET 0
#elif defined(NEON_DOTPROD)
#define PARTS 1
#define INPUT_OFFSET 0
#else
/* without a sign */
#define PARTS 1
#define INPUT_OFFSET 128
#endif

#ifdef VECTOR_BITS
/* After that there is the sum of the sizes of the negative ones, and a bit for each four. If no input
   is negative, as after ReLU, most are zero, and there is no offset: it says whether any is not zero.
   Else, if inputs are stored with their sizes, that of every second four says whether its products
   and those of the next are too large to be added in 16 bits. */
#define NEGATIVE(inputs) (PARTS * (size_t)(inputs))
#define FOUR_BITS(inputs) (NEGATIVE(inputs) + 4)
#define ROW_BYTES(inputs) (FOUR_BITS(inputs) + ((size_t)(inputs) + 255) / 256 * 8)
#else
#define ROW_BYTES(inputs) (PARTS * (size_t)(inputs))
#endif

#ifdef MATRIX_TILES
#define SPARE_ROWS 15 /* that are read after the last, and their sums ignored */
#else
#define SPARE_ROWS 0
#endif

INLINE int32_t NAME(four_bytes)(const uint8_t *from) {
    int32_t four;
    memcpy(&four, from, 4);
    return four;
}

INLINE int NAME(has_negative)(const uint8_t *row, int inputs) {
#ifdef VECTOR_BITS
    return NAME(four_bytes)(row + NEGATIVE(inputs)) != 0;
#else
    (void)row, (void)inputs;
    return 1;
#endif
}

static uint8_t *NAME(input_buffer)(Scratch *s, int rows, int inputs) {
    return scratch_buffer(s, 0, (rows + SPARE_ROWS) * ROW_BYTES(inputs));
}

#ifdef VECTOR_BITS
static void NAME(find_zeros)(uint8_t *row, int inputs) {
    for (int first = 0; first < inputs; first += 256) {
        const int count = inputs - first < 256 ? (inputs - first) / 4 : 64;
        const uint8_t *fours = row + PARTS * (size_t)first;
        uint64_t used = 0;
        int i = 0;
        for (; i + LANES / PARTS <= count; i += LANES / PARTS) used |= NOT_ZERO(LOAD(fours + 4 * PARTS * i)) << i;
        for (; i < count; i++) used |= (uint64_t)(NAME(four_bytes)(fours + 4 * PARTS * i) != 0) << i;
        memcpy(row + FOUR_BITS(inputs) + first / 32, &used, 8);
    }
}
#endif

#ifdef SIGN_MAGNITUDE
/* of each two fours, whether in either half the four sizes sum up to more than 256 */
static void NAME(find_large)(uint8_t *row, int inputs) {
    for (int first = 0; first < inputs; first += 256) {
        const int count = inputs - first < 256 ? (inputs - first) / 4 : 64;
        const uint8_t *fours = row + 2 * (size_t)first;
        const __m128i ones = _mm_set1_epi32(0x01010101), most = _mm_set1_epi64x(0x01000100);
        uint64_t large = 0;
        for (int i = 0; i + 2 <= count; i += 2) {
            __m128i pairs = _mm_maddubs_epi16(_mm_loadu_si128((const __m128i *)(fours + 8 * i)), ones);
            __m128i sums = _mm_add_epi16(pairs, _mm_srli_si128(pairs, 8));
            large |= (uint64_t)(_mm_cvtsi128_si32(_mm_cmpgt_epi16(sums, most)) != 0) << i;
        }
        memcpy(row + FOUR_BITS(inputs) + first / 32, &large, 8);
    }
}
#endif

/* A function of its own, so that no compiler sees that something is added next: an instruction set
   that does both at once would round some numbers otherwise than the others. */
APART void NAME(multiply)(const float *x, float by, int count, float *y) {
    for (int i = 0; i < count; i++) y[i] = x[i] * by;
}

/* Store up to 256 inputs of a row, from a multiple of 256 on, in 8 bits, or with PARTS of them; x has
   been multiplied to be at most 127 in size. Returns the sum of the sizes of negative ones, where it is needed. */
static int32_t NAME(round_inputs)(const float *x, int offset, int count, uint8_t *row) {
#define ROUNDED(i) ((int)(x[i] + 128.5f) - 128)
    (void)offset;
#if defined(SIGN_MAGNITUDE)
    __m256i sums = _mm256_setzero_si256();
    int32_t sum[8];
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i fours[2];
        UNROLL for (int j = 0; j < 2; j++) {
            __m256 more = _mm256_add_ps(_mm256_loadu_ps(x + i + 8 * j), _mm256_set1_ps(128.5f));
            __m256i value = _mm256_sub_epi32(_mm256_cvttps_epi32(more), _mm256_set1_epi32(128));
            __m256i size = _mm256_abs_epi32(value), sign = _mm256_srai_epi32(value, 31);
            sums = _mm256_add_epi32(sums, _mm256_and_si256(size, sign));
            fours[j] = _mm256_packs_epi32(size, sign);
        }
        __m256i bytes = _mm256_packs_epi16(fours[0], fours[1]);
        _mm256_storeu_si256((__m256i *)(row + 2 * i), _mm256_permute4x64_epi64(bytes, 0xd8));
    }
    _mm256_storeu_si256((__m256i *)sum, sums);
    for (int j = 1; j < 8; j++) sum[0] += sum[j];
    for (; i < count; i++) {
        int value = ROUNDED(i), sign = value < 0 ? -1 : 0, size = (value ^ sign) - sign;
        row[i / 4 * 8 + i % 4] = (uint8_t)size;
        row[i / 4 * 8 + i % 4 + 4] = (uint8_t)sign;
        sum[0] += size & sign;
    }
    return sum[0];
#elif defined(EVEN_AND_ODD)
    for (int i = 0; i < count; i += 4) {
        int16_t four[4] = {(int16_t)ROUNDED(i), (int16_t)ROUNDED(i + 2), (int16_t)ROUNDED(i + 1), (int16_t)ROUNDED(i + 3)};
        memcpy(row + 2 * i, four, 8);
    }
    return 0;
#else
    for (int i = 0; i < count; i++) row[i] = (uint8_t)(ROUNDED(i) + offset);
    return 0;
#endif
#undef ROUNDED
}

/* store a row of inputs, and what is known of them all; `by` makes them at most 127 in size */
static void NAME(round_row)(const float *x, float by, int negative, int count, uint8_t *row) {
    const int offset = negative ? INPUT_OFFSET : 0;
    int32_t sum = offset;
    for (int first = 0; first < count; first += 256) {
        const int some = count - first < 256 ? count - first : 256;
        float multiplied[256];
        NAME(multiply)(x + first, by, some, multiplied);
        sum += NAME(round_inputs)(multiplied, offset, some, row + PARTS * first);
    }
#ifdef VECTOR_BITS
    memcpy(row + NEGATIVE(count), &sum, 4);
    if (!NAME(has_negative)(row, count)) NAME(find_zeros)(row, count);
#ifdef SIGN_MAGNITUDE
    else NAME(find_large)(row, count);
#endif
#else
    (void)sum;
#endif
}

static void NAME(quantize)(const float *x, int stride, int rows, int width, uint8_t *q, float *scales) {
    for (int r = 0; r < rows; r++, x += stride, q += ROW_BYTES(width)) {
        float least = 0, most = 1e-12f;
        for (int i = 0; i < width; i++) {
            least = x[i] < least ? x[i] : least;
            most = x[i] > most ? x[i] : most;
        }
        most = -least > most ? -least : most;
        scales[r] = most / 127.0f;
#ifdef VECTOR_BITS
        NAME(round_row)(x, 127.0f / most, least < 0, width, q);
#else
        NAME(round_row)(x, 127.0f / most, 1, width, q);
#endif
    }
}

/* --- tiles of vectors: the products of some rows with 64 outputs; how many is returned --- */

#ifdef VECTOR
#if defined(SIGN_MAGNITUDE)
#define VECTOR_ROWS 1 /* each row has its own inputs that are too large */
#define SPARSE_ROWS 1
#elif VECTOR_BITS == 512
#define VECTOR_ROWS 6
#define TILE_VECTORS(rows) 4
#define SPARSE_ROWS 2 /* one has too few sums to be added to at a time */
#elif VECTOR_BITS == 256
#define VECTOR_ROWS 6
#define TILE_VECTORS(rows) ((rows) == 1 ? 8 : (rows) <= 3 ? 4 : 2)
#define SPARSE_ROWS 1 /* two have twice as many fours in which either is not zero */
#elif defined(EVEN_AND_ODD)
#define VECTOR_ROWS 3
#define TILE_VECTORS(rows) ((rows) == 1 ? 4 : 2)
#else
#define VECTOR_ROWS 4
#define TILE_VECTORS(rows) ((rows) == 1 ? 8 : 4)
#endif

/* Add the products of four inputs with the weights of a vector of outputs. Inputs that are stored in
   twice as many bytes are given in two parts, x and y. */
INLINE VECTOR NAME(add_products)(VECTOR sum, const int parts, VECTOR x, VECTOR y, VECTOR weight) {
    (void)parts;
#if defined(SIGN_MAGNITUDE)
    if (parts == 2) weight = XOR(weight, y);
    return ADD(sum, ADD_PAIRS(ADD_BYTE_PAIRS(x, weight), REPEAT(0x00010001)));
#elif defined(EVEN_AND_ODD)
    return ADD(sum, ADD(ADD_PAIRS(EVEN_BYTES(weight), x), ADD_PAIRS(ODD_BYTES(weight), y)));
#else
    (void)y;
    return ADD_BYTE_FOURS(sum, x, weight);
#endif
}

/* add the products of four inputs of R rows with C vectors of outputs */
INLINE void NAME(add_four)(const int R, const int C, const int parts, VECTOR sum[][8], const uint8_t *a,
                           size_t row, const int8_t *w) {
    VECTOR weight[8];
    UNROLL for (int c = 0; c < C; c++) weight[c] = LOAD(w + 4 * LANES * c);
    UNROLL for (int r = 0; r < R; r++) {
        VECTOR x = REPEAT(NAME(four_bytes)(a + r * row)), y = x;
        if (parts == 2) y = REPEAT(NAME(four_bytes)(a + r * row + 4));
        UNROLL for (int c = 0; c < C; c++) sum[r][c] = NAME(add_products)(sum[r][c], parts, x, y, weight[c]);
    }
}

#ifdef SIGN_MAGNITUDE
/* add the products of eight inputs of a row with 64 outputs: together in 16 bits, and then in 32 */
INLINE void NAME(add_two_fours)(VECTOR *sum, const uint8_t *a, const int8_t *w) {
    const VECTOR x = REPEAT(NAME(four_bytes)(a)), sign = REPEAT(NAME(four_bytes)(a + 4));
    const VECTOR other_x = REPEAT(NAME(four_bytes)(a + 8)), other_sign = REPEAT(NAME(four_bytes)(a + 12));
    UNROLL for (int c = 0; c < 64 / LANES; c++) {
        VECTOR products = ADD_BYTE_PAIRS(x, XOR(LOAD(w + 4 * LANES * c), sign));
        VECTOR other = ADD_BYTE_PAIRS(other_x, XOR(LOAD(w + 256 + 4 * LANES * c), other_sign));
        sum[c] = ADD(sum[c], ADD_PAIRS(ADD_16(products, other), REPEAT(0x00010001)));
    }
}

/* a row with negative inputs; with each eight inputs `step` bytes from `next` on are prefetched */
INLINE void NAME(signed_row)(const uint8_t *a, int K, const int8_t *w, int32_t *out, const int8_t *next, size_t step) {
    VECTOR sum[1][8];
    UNROLL for (int c = 0; c < 64 / LANES; c++) sum[0][c] = REPEAT(NAME(four_bytes)(a + NEGATIVE(K)));
    for (int first = 0; first < K; first += 256) {
        const int count = K - first < 256 ? (K - first) / 4 : 64;
        uint64_t large;
        memcpy(&large, a + FOUR_BITS(K) + first / 32, 8);
        const uint8_t *fours = a + 2 * (size_t)first;
        int i = 0;
        for (; i + 2 <= count; i += 2, large >>= 2, fours += 16, w += 512, next += step) {
            __builtin_prefetch(next);
            if (large & 1) {
                NAME(add_four)(1, 64 / LANES, 2, sum, fours, 0, w);
                NAME(add_four)(1, 64 / LANES, 2, sum, fours + 8, 0, w + 256);
            } else {
                NAME(add_two_fours)(sum[0], fours, w);
            }
        }
        if (i < count) NAME(add_four)(1, 64 / LANES, 2, sum, fours, 0, w); /* of the last inputs */
    }
    UNROLL for (int c = 0; c < 64 / LANES; c++) STORE(out + LANES * c, sum[0][c]);
}
#else
/* R rows and C vectors of outputs; with each four inputs `step` bytes from `next` on are prefetched */
INLINE void NAME(tile)(const int R, const int C, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                       const int8_t *next, size_t step) {
    const size_t row = ROW_BYTES(K);
    VECTOR sum[VECTOR_ROWS][8];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) sum[r][c] = REPEAT(0);
    for (const uint8_t *end = a + PARTS * (size_t)K; a < end; a += PARTS * 4, w += 256, next += step) {
        __builtin_prefetch(next);
        NAME(add_four)(R, C, PARTS, sum, a, row, w);
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) STORE(out + 64 * r + LANES * c, sum[r][c]);
}

INLINE void NAME(row_tiles)(const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                            const int8_t *next, size_t share) {
    const int C = TILE_VECTORS(R);
    const size_t step = R * share * LANES * C / 64 / (K / 4);
    for (int c = 0; c < 64 / LANES; c += C, next += step * (K / 4))
        NAME(tile)(R, C, a, K, w + 4 * LANES * c, out + LANES * c, next, step);
}
#endif

#ifdef VECTOR_BITS
/* up to SPARSE_ROWS rows without negative inputs, and only those of their fours that are not zero */
INLINE void NAME(sparse_tiles)(const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                               const int8_t *next, size_t share) {
    const int C = 64 / LANES;
    const size_t row = ROW_BYTES(K), step = R * share / (K / 4);
    VECTOR sum[SPARSE_ROWS][8];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) sum[r][c] = REPEAT(0);
    for (int first = 0; first < K / 4; first += 64) {
        uint64_t used = 0, own;
        UNROLL for (int r = 0; r < R; r++) {
            memcpy(&own, a + r * row + FOUR_BITS(K) + first / 8, 8);
            used |= own;
        }
        for (; used; used &= used - 1) {
            const size_t four = first + __builtin_ctzll(used);
            if (step > 64) { /* with few rows only the same fours are needed next */
                __builtin_prefetch(w + 64 * (size_t)K + 256 * four);
                __builtin_prefetch(w + 64 * (size_t)K + 256 * four + 64);
            } else {
                __builtin_prefetch(next + step * four);
            }
            NAME(add_four)(R, C, 1, sum, a + 4 * PARTS * four, row, w + 256 * four);
        }
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) STORE(out + 64 * r + LANES * c, sum[r][c]);
}

APART int NAME(positive_tiles)(int rows, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                               const int8_t *next, size_t share) {
    if (rows < SPARSE_ROWS) NAME(sparse_tiles)(1, a, K, w, out, next, share);
    else NAME(sparse_tiles)(SPARSE_ROWS, a, K, w, out, next, share);
    return rows < SPARSE_ROWS ? 1 : SPARSE_ROWS;
}
#endif

#ifdef NEON_I8MM
/* add the products of eight inputs, or of four, of P pairs of rows with 16 outputs */
INLINE void NAME(add_eight)(const int P, const int R, const int several, int32x4_t sum[][8], const uint8_t *a,
                            size_t row, const int8_t *w) {
    int8x16_t x[2];
    UNROLL for (int p = 0; p < P; p++) {
        int64_t eight[2] = {0, 0};
        memcpy(&eight[0], a + 2 * p * row, several);
        memcpy(&eight[1], a + (2 * p + 1 < R ? 2 * p + 1 : 2 * p) * row, several);
        x[p] = vreinterpretq_s8_s64(vld1q_s64(eight));
    }
    UNROLL for (int c = 0; c < 4; c++) {
        int32x4_t first = LOAD(w + 16 * c), second = several == 8 ? LOAD(w + 256 + 16 * c) : REPEAT(0);
        int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
        int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
        UNROLL for (int p = 0; p < P; p++) {
            sum[p][2 * c] = vmmlaq_s32(sum[p][2 * c], x[p], low);
            sum[p][2 * c + 1] = vmmlaq_s32(sum[p][2 * c + 1], x[p], high);
        }
    }
}

INLINE void NAME(pair_tiles)(const int P, const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                             const int8_t *next, size_t share) {
    const size_t row = ROW_BYTES(K), step = 2 * R * share / K; /* prefetched with each eight inputs */
    for (int c = 0; c < 4; c++, w += 64, out += 16) {
        int32x4_t sum[2][8];
        UNROLL for (int p = 0; p < P; p++)
            UNROLL for (int i = 0; i < 8; i++) sum[p][i] = REPEAT(0);
        int k = 0;
        for (; k + 8 <= K; k += 8, next += step) {
            __builtin_prefetch(next);
            NAME(add_eight)(P, R, 8, sum, a + k, row, w + 64 * (size_t)k);
        }
        if (k < K) NAME(add_eight)(P, R, 4, sum, a + k, row, w + 64 * (size_t)k);
        UNROLL for (int p = 0; p < P; p++)
            UNROLL for (int i = 0; i < 8; i++) {
                vst1_s32(out + 64 * (2 * p) + 2 * i, vget_low_s32(sum[p][i]));
                if (2 * p + 1 < R) vst1_s32(out + 64 * (2 * p + 1) + 2 * i, vget_high_s32(sum[p][i]));
            }
    }
}

APART int NAME(vector_tiles)(int rows, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                             const int8_t *next, size_t share) {
    switch (rows) {
    case 1: NAME(row_tiles)(1, a, K, w, out, next, share); return 1;
    case 2: NAME(pair_tiles)(1, 2, a, K, w, out, next, share); return 2;
    case 3: NAME(pair_tiles)(2, 3, a, K, w, out, next, share); return 3;
    default: NAME(pair_tiles)(2, 4, a, K, w, out, next, share); return 4;
    }
}
#else
APART int NAME(vector_tiles)(int rows, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                             const int8_t *next, size_t share) {
#ifdef VECTOR_BITS
    if (!NAME(has_negative)(a, K) && (rows < SPARSE_ROWS || !NAME(has_negative)(a + (SPARSE_ROWS - 1) * ROW_BYTES(K), K)))
        return NAME(positive_tiles)(rows, a, K, w, out, next, share);
#endif
#ifdef SIGN_MAGNITUDE
    NAME(signed_row)(a, K, w, out, next, share / (K / 4) * 2);
    return 1;
#else
    switch (rows) {
    case 1: NAME(row_tiles)(1, a, K, w, out, next, share); return 1;
    case 2: NAME(row_tiles)(2, a, K, w, out, next, share); return 2;
#if VECTOR_ROWS > 3
    case 3: NAME(row_tiles)(3, a, K, w, out, next, share); return 3;
#endif
#if VECTOR_ROWS > 4
    case 4: NAME(row_tiles)(4, a, K, w, out, next, share); return 4;
    case 5: NAME(row_tiles)(5, a, K, w, out, next, share); return 5;
#endif
    default: NAME(row_tiles)(VECTOR_ROWS, a, K, w, out, next, share); return VECTOR_ROWS;
    }
#endif
}
#endif
#else
#define VECTOR_ROWS 1
APART int NAME(vector_tiles)(int rows, const uint8_t *a, int K, const int8_t *w, int32_t *out,
                             const int8_t *next, size_t share) {
    (void)rows, (void)next, (void)share;
    for (int c = 0; c < 64; c++) out[c] = 0;
    for (int k = 0; k < K; k += 4, w += 256)
        for (int c = 0; c < 64; c++)
            out[c] += a[k] * w[4 * c] + a[k + 1] * w[4 * c + 1] + a[k + 2] * w[4 * c + 2] +
                      a[k + 3] * w[4 * c + 3];
    return 1;
}
#endif

/* --- tiles of matrices: the same for more rows at a time --- */

#ifdef MATRIX_TILES
#define TILE_ROWS 32
#ifndef MATRIX_ROWS
#define MATRIX_ROWS 4 /* with fewer, vectors are faster */
#endif

/* The processor has eight tiles of 16 rows of 64 bytes: 16 rows with 64 inputs each, or of 16 outputs
   64 weights, four by four, as they are packed, or the sums of 16 rows and 16 outputs. */
static void NAME(begin_matrices)(void) {
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("" ::: "memory"); /* GCC does not know that tiles are loaded from memory */
    _tile_loadconfig(&tiles);
}

static void NAME(end_matrices)(void) { _tile_release(); }

/* 16 rows, and 64 outputs */
static void NAME(matrix_row)(const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int k = 0; k < K; k += 64, w += 64 * 64) {
        _tile_loadd(4, a + k, ROW_BYTES(K));
        _tile_loadd(5, w, 256);
        _tile_dpbusd(0, 4, 5);
        _tile_loadd(6, w + 64, 256);
        _tile_dpbusd(1, 4, 6);
        _tile_loadd(7, w + 128, 256);
        _tile_dpbusd(2, 4, 7);
        _tile_loadd(5, w + 192, 256);
        _tile_dpbusd(3, 4, 5);
    }
    _tile_stored(0, out, 256);
    _tile_stored(1, out + 16, 256);
    _tile_stored(2, out + 32, 256);
    _tile_stored(3, out + 48, 256);
}

/* 32 rows, and 32 outputs */
static void NAME(matrix_square)(const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int k = 0; k < K; k += 64, w += 64 * 64) {
        _tile_loadd(4, a + k, ROW_BYTES(K));
        _tile_loadd(6, w, 256);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, w + 64, 256);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, a + 16 * ROW_BYTES(K) + k, ROW_BYTES(K));
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, out, 256);
    _tile_stored(1, out + 16, 256);
    _tile_stored(2, out + 16 * 64, 256);
    _tile_stored(3, out + 16 * 64 + 16, 256);
}

static int NAME(matrix_tiles)(int rows, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    if (rows <= 16) {
        NAME(matrix_row)(a, K, w, out);
        return rows;
    }
    NAME(matrix_square)(a, K, w, out);
    NAME(matrix_square)(a, K, w + 128, out + 32);
    return rows < TILE_ROWS ? rows : TILE_ROWS;
}
#else
#define TILE_ROWS VECTOR_ROWS
#endif

/* --- products --- */

/* y = x W^T + b for the outputs from `from` to `to`, multiples of 64; y has rows of `width` */
static void NAME(product)(const Linear *l, const uint8_t *q, const float *scales, int rows,
                          int from, int to, float *y, int width) {
    static const int32_t no_offset[64] = {0};
    const int K = l->inputs;
    int32_t sums[TILE_ROWS * 64] __attribute__((aligned(64)));
#ifdef MATRIX_TILES
    const int by_matrices = rows >= MATRIX_ROWS && K % 64 == 0;
    if (by_matrices) NAME(begin_matrices)();
#endif
    for (int n = from; n < to; n += 64, y += 64) {
        const int8_t *w = l->weight + (size_t)n * K;
        const float *scale = l->scale + n, *bias = l->bias + n;
        const int32_t *offset = l->offset + n;
        const int has_next = rows > 0 && n + 64 < to;
        const int8_t *next = has_next ? w + (size_t)64 * K : w;
        const size_t share = has_next ? (size_t)64 * K / rows : 0;
        for (int r = 0, done; r < rows; r += done) {
            const uint8_t *a = q + r * ROW_BYTES(K);
#ifdef MATRIX_TILES
            if (by_matrices && rows - r >= MATRIX_ROWS) done = NAME(matrix_tiles)(rows - r, a, K, w, sums);
            else
#endif
            done = NAME(vector_tiles)(rows - r, a, K, w, sums, next, share);
            next += done * share;
            for (int i = 0; i < done; i++) {
                float own = scales[r + i];
                float *out = y + (size_t)(r + i) * width;
                const int32_t *sum = sums + 64 * i;
                const int32_t *less = NAME(has_negative)(a + i * ROW_BYTES(K), K) ? offset : no_offset;
                for (int c = 0; c < 64; c++)
                    out[c] = (float)(sum[c] - (INPUT_OFFSET ? less[c] : 0)) * (own * scale[c]) + bias[c];
            }
        }
    }
#ifdef MATRIX_TILES
    if (by_matrices) NAME(end_matrices)();
#endif
}

typedef struct {
    const Linear *l;
    const uint8_t *q;
    const float *scales;
    float *y;
    int rows, from, to, width, part_size;
} NAME(Product);

static void NAME(product_part)(void *given, int part) {
    const NAME(Product) *p = given;
    int from = p->from + part * p->part_size;
    int to = from + p->part_size < p->to ? from + p->part_size : p->to;
    NAME(product)(p->l, p->q, p->scales, p->rows, from, to, p->y + part * p->part_size, p->width);
}

static void NAME(shared_product)(Scratch *s, const Linear *l, const uint8_t *q, const float *scales,
                                 int rows, int from, int to, float *y, int width) {
    if (!s->pool || (s->pool->alone > 0 && s->pool->alone--)) {
        NAME(product)(l, q, scales, rows, from, to, y, width);
        return;
    }
    int part_size = ((to - from) / (4 * (s->pool->count + 1)) + 63) & ~63;
    NAME(Product) job = {l, q, scales, y, rows, from, to, width, part_size};
    run_parallel(s->pool, NAME(product_part), &job, (to - from + part_size - 1) / part_size);
}

/* x has rows of `stride`, of which the first inputs count; y has rows of all outputs */
static void NAME(linear)(Scratch *s, const Linear *l, const float *x, int stride, int rows, float *y) {
    uint8_t *q = NAME(input_buffer)(s, rows, l->inputs);
    float *scales = scratch_buffer(s, 1, sizeof(float) * rows);
    NAME(quantize)(x, stride, rows, l->inputs, q, scales);
    NAME(shared_product)(s, l, q, scales, rows, 0, l->outputs, y, l->outputs);
}

#undef UNROLL
#undef INLINE
#undef APART
#undef VECTOR
#undef LOAD
#undef STORE
#undef REPEAT
#undef XOR
#undef ADD
#undef ADD_PAIRS
#undef ADD_16
#undef ADD_BYTE_PAIRS
#undef ADD_BYTE_FOURS
#undef EVEN_BYTES
#undef ODD_BYTES
#undef NOT_ZERO
#undef INPUT_OFFSET
#undef LANES
#undef TILE_ROWS
#undef VECTOR_ROWS
#undef SPARSE_ROWS
#undef SPARE_ROWS
#undef TILE_VECTORS
