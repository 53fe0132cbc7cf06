/* Included once for each instruction set, with NAME(x) giving each function its name there. */

#define CHUNK_OUTPUTS 512 /* outputs of the projection that candidates are taken from together */
#define LARGE_CHUNK 8192  /* outputs that are computed together, if hypotheses are few */
#define DISTANCE 2        /* cache entries between the one used and the one prefetched */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

static inline float NAME(from_bf16)(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

static inline uint16_t NAME(to_bf16)(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float NAME(exponential)(float x) {
    /* 2^n 2^f, n whole and |f| at most a half: a polynomial of six terms; 4e-6 of it off at most */
    float y = x * 1.44269504f;
    y = y < -126.0f ? -126.0f : y;
    y = y > 126.0f ? 126.0f : y;
    int32_t n = (int32_t)(y + 127.5f); /* above 0, where cutting off is rounding */
    float f = (y - (float)(n - 127)) * 0.69314718f;
    float p = 1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.04166664f + f * (0.00833689f + f * 0.00139f)))));
    union { int32_t bits; float power; } two = {n << 23};
    return p * two.power;
}

/* --- products of int8 --- */

#if defined(AVX2) || defined(NEON_DOTPROD)
#define INPUT_OFFSET 0
#else
#define INPUT_OFFSET 128 /* inputs are stored without a sign */
#endif

static void NAME(quantize)(const float *x, int stride, int rows, int width, uint8_t *q, float *scales) {
    for (int r = 0; r < rows; r++, x += stride, q += width) {
        float most = 1e-12f;
        for (int i = 0; i < width; i++) {
            float size = fabsf(x[i]);
            most = size > most ? size : most;
        }
        float inverse = 127.0f / most;
        scales[r] = most / 127.0f;
        for (int i = 0; i < width; i++) q[i] = (uint8_t)((int)(x[i] * inverse + 128.5f) - 128 + INPUT_OFFSET);
    }
}

/* The products of R rows with 64 outputs, TILE_ROWS rows at most: sums of whole numbers, which are
   the same for every instruction set but for the offset of the inputs. A tile holds the sums of some
   rows and outputs in registers. */

#if defined(AVX512_VNNI)
#define TILE_ROWS 6
static inline __attribute__((always_inline)) void NAME(tile)(
    const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    __m512i sum[TILE_ROWS][4];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < 4; c++) sum[r][c] = _mm512_setzero_si512();
    for (int k = 0; k < K; k += 4, w += 256) {
        __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
        __m512i w2 = _mm512_loadu_si512(w + 128), w3 = _mm512_loadu_si512(w + 192);
        UNROLL for (int r = 0; r < R; r++) {
            int32_t four;
            memcpy(&four, a + (size_t)r * K + k, 4);
            __m512i x = _mm512_set1_epi32(four);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, w0);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, w1);
            sum[r][2] = _mm512_dpbusd_epi32(sum[r][2], x, w2);
            sum[r][3] = _mm512_dpbusd_epi32(sum[r][3], x, w3);
        }
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < 4; c++) _mm512_storeu_si512(out + 64 * r + 16 * c, sum[r][c]);
}

static void NAME(tiles)(int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    switch (R) {
    case 1: NAME(tile)(1, a, K, w, out); return;
    case 2: NAME(tile)(2, a, K, w, out); return;
    case 3: NAME(tile)(3, a, K, w, out); return;
    case 4: NAME(tile)(4, a, K, w, out); return;
    case 5: NAME(tile)(5, a, K, w, out); return;
    default: NAME(tile)(6, a, K, w, out); return;
    }
}
#elif defined(AVX2)
#define TILE_ROWS 4
/* C vectors of 8 outputs. The sum of two products fits in 16 bits, for inputs are at most 127 and
   weights at most 128, each of them without its sign, which goes to the input. */
static inline __attribute__((always_inline)) void NAME(tile)(
    const int R, const int C, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[TILE_ROWS][8];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) sum[r][c] = _mm256_setzero_si256();
    for (int k = 0; k < K; k += 4, w += 256)
        UNROLL for (int c = 0; c < C; c++) {
            __m256i weight = _mm256_loadu_si256((const __m256i *)(w + 32 * c));
            __m256i size = _mm256_abs_epi8(weight);
            UNROLL for (int r = 0; r < R; r++) {
                int32_t four;
                memcpy(&four, a + (size_t)r * K + k, 4);
                __m256i x = _mm256_sign_epi8(_mm256_set1_epi32(four), weight);
                __m256i pairs = _mm256_maddubs_epi16(size, x);
                sum[r][c] = _mm256_add_epi32(sum[r][c], _mm256_madd_epi16(pairs, ones));
            }
        }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++)
            _mm256_storeu_si256((__m256i *)(out + 64 * r + 8 * c), sum[r][c]);
}

static void NAME(tiles)(int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    if (R == 1) NAME(tile)(1, 8, a, K, w, out);
    else if (R == 2) for (int c = 0; c < 8; c += 4) NAME(tile)(2, 4, a, K, w + 32 * c, out + 8 * c);
    else if (R == 3) for (int c = 0; c < 8; c += 2) NAME(tile)(3, 2, a, K, w + 32 * c, out + 8 * c);
    else for (int c = 0; c < 8; c += 2) NAME(tile)(4, 2, a, K, w + 32 * c, out + 8 * c);
}
#elif defined(NEON_DOTPROD)
#define TILE_ROWS 4
/* C vectors of 4 outputs */
static inline __attribute__((always_inline)) void NAME(tile)(
    const int R, const int C, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    int32x4_t sum[TILE_ROWS][8];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) sum[r][c] = vdupq_n_s32(0);
    for (int k = 0; k < K; k += 4, w += 256) {
        int8x16_t x[TILE_ROWS];
        UNROLL for (int r = 0; r < R; r++) {
            int32_t four;
            memcpy(&four, a + (size_t)r * K + k, 4);
            x[r] = vreinterpretq_s8_s32(vdupq_n_s32(four));
        }
        UNROLL for (int c = 0; c < C; c++) {
            int8x16_t weight = vld1q_s8(w + 16 * c);
            UNROLL for (int r = 0; r < R; r++) sum[r][c] = vdotq_s32(sum[r][c], weight, x[r]);
        }
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) vst1q_s32(out + 64 * r + 4 * c, sum[r][c]);
}

#ifdef NEON_I8MM
/* P pairs of rows and 16 outputs, 8 inputs at a time, and at the end perhaps 4 */
static inline __attribute__((always_inline)) void NAME(pair_tile)(
    const int P, const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    int32x4_t sum[2][8];
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < 8; c++) sum[p][c] = vdupq_n_s32(0);
    for (int k = 0; k < K; k += 8, w += 512) {
        const int several = K - k >= 8 ? 8 : 4;
        int8x16_t x[2];
        UNROLL for (int p = 0; p < P; p++) {
            int64_t eight[2] = {0, 0};
            memcpy(&eight[0], a + (size_t)(2 * p) * K + k, several);
            memcpy(&eight[1], a + (size_t)(2 * p + 1 < R ? 2 * p + 1 : 2 * p) * K + k, several);
            x[p] = vreinterpretq_s8_s64(vld1q_s64(eight));
        }
        UNROLL for (int c = 0; c < 4; c++) {
            int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(w + 16 * c));
            int32x4_t second = several == 8 ? vreinterpretq_s32_s8(vld1q_s8(w + 256 + 16 * c)) : vdupq_n_s32(0);
            int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
            int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
            UNROLL for (int p = 0; p < P; p++) {
                sum[p][2 * c] = vmmlaq_s32(sum[p][2 * c], x[p], low);
                sum[p][2 * c + 1] = vmmlaq_s32(sum[p][2 * c + 1], x[p], high);
            }
        }
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < 8; c++) {
            vst1_s32(out + 64 * (2 * p) + 2 * c, vget_low_s32(sum[p][c]));
            if (2 * p + 1 < R) vst1_s32(out + 64 * (2 * p + 1) + 2 * c, vget_high_s32(sum[p][c]));
        }
}
#endif

static void NAME(tiles)(int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    if (R == 1) {
        for (int c = 0; c < 16; c += 8) NAME(tile)(1, 8, a, K, w + 16 * c, out + 4 * c);
        return;
    }
#ifdef NEON_I8MM
    for (int c = 0; c < 4; c++)
        if (R == 2) NAME(pair_tile)(1, 2, a, K, w + 64 * c, out + 16 * c);
        else if (R == 3) NAME(pair_tile)(2, 3, a, K, w + 64 * c, out + 16 * c);
        else NAME(pair_tile)(2, 4, a, K, w + 64 * c, out + 16 * c);
#else
    for (int c = 0; c < 16; c += 4)
        if (R == 2) NAME(tile)(2, 4, a, K, w + 16 * c, out + 4 * c);
        else if (R == 3) NAME(tile)(3, 4, a, K, w + 16 * c, out + 4 * c);
        else NAME(tile)(4, 4, a, K, w + 16 * c, out + 4 * c);
#endif
}
#else
#define TILE_ROWS 1
static void NAME(tiles)(int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    (void)R; /* always 1 */
    for (int c = 0; c < 64; c++) out[c] = 0;
    for (int k = 0; k < K; k += 4, w += 256)
        for (int c = 0; c < 64; c++)
            out[c] += a[k] * w[4 * c] + a[k + 1] * w[4 * c + 1] + a[k + 2] * w[4 * c + 2] +
                      a[k + 3] * w[4 * c + 3];
}
#endif

/* y = x W^T + b for the outputs from `from` to `to`, multiples of 64; y has rows of `width` */
static void NAME(product)(const Linear *l, const uint8_t *q, const float *scales, int rows,
                          int from, int to, float *y, int width) {
    const int K = l->inputs;
    int32_t sums[TILE_ROWS * 64] __attribute__((aligned(64)));
    for (int n = from; n < to; n += 64, y += 64) {
        const int8_t *w = l->weight + (size_t)n * K;
        const float *scale = l->scale + n, *bias = l->bias + n;
        const int32_t *offset = l->offset + n;
        for (int r = 0; r < rows; r += TILE_ROWS) {
            int R = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
            NAME(tiles)(R, q + (size_t)r * K, K, w, sums);
            for (int i = 0; i < R; i++) {
                float own = scales[r + i];
                float *out = y + (size_t)(r + i) * width;
                const int32_t *sum = sums + 64 * i;
                for (int c = 0; c < 64; c++)
                    out[c] = (float)(sum[c] - (INPUT_OFFSET ? offset[c] : 0)) * (own * scale[c]) + bias[c];
            }
        }
    }
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
    uint8_t *q = scratch_buffer(s, 0, (size_t)rows * l->inputs);
    float *scales = scratch_buffer(s, 1, sizeof(float) * rows);
    NAME(quantize)(x, stride, rows, l->inputs, q, scales);
    NAME(shared_product)(s, l, q, scales, rows, 0, l->outputs, y, l->outputs);
}

/* --- the rest of a layer --- */

static void NAME(normalize)(const Model *m, const Norm *norm, const float *x, int rows, float *y) {
    const int M = m->d_model;
    for (int r = 0; r < rows; r++, x += M, y += M) {
        float sum = 0, squares = 0;
        for (int i = 0; i < M; i++) sum += x[i];
        float mean = sum / M;
        for (int i = 0; i < M; i++) squares += (x[i] - mean) * (x[i] - mean);
        float by = 1 / sqrtf(squares / M + m->epsilon);
        for (int i = 0; i < M; i++) y[i] = (x[i] - mean) * by * norm->gain[i] + norm->bias[i];
    }
}

/* x becomes x + y, normalised if norms come after; y has rows of `width` */
static void NAME(residual)(const Model *m, const Norm *norm, float *x, const float *y, int rows,
                           int width) {
    const int M = m->d_model;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < M; i++) x[(size_t)r * M + i] += y[(size_t)r * width + i];
    if (!m->pre) NAME(normalize)(m, norm, x, rows, x);
}

static const float *NAME(pre_norm)(const Model *m, Scratch *s, const Norm *norm, const float *x,
                                 int rows) {
    if (!m->pre) return x;
    float *y = scratch_buffer(s, 2, sizeof(float) * rows * m->d_model);
    NAME(normalize)(m, norm, x, rows, y);
    return y;
}

static void NAME(activate)(const Model *m, float *x, size_t count) {
    if (m->activation == 0)
        for (size_t i = 0; i < count; i++) x[i] = x[i] > 0 ? x[i] : 0;
    else if (m->activation == 1)
        for (size_t i = 0; i < count; i++) x[i] *= 0.5f * (1 + erff(x[i] * 0.70710678f));
    else
        for (size_t i = 0; i < count; i++) x[i] /= 1 + NAME(exponential)(-x[i]);
}

static void NAME(feed_forward)(const Model *m, Scratch *s, const Linear *inner, const Linear *outer,
                               const Norm *norm, float *x, int rows) {
    float *h = scratch_buffer(s, 3, sizeof(float) * rows * inner->outputs);
    float *y = scratch_buffer(s, 4, sizeof(float) * rows * outer->outputs);
    NAME(linear)(s, inner, NAME(pre_norm)(m, s, norm, x, rows), m->d_model, rows, h);
    NAME(activate)(m, h, (size_t)rows * inner->outputs);
    NAME(linear)(s, outer, h, inner->outputs, rows, y);
    NAME(residual)(m, norm, x, y, rows, outer->outputs);
}

static void NAME(embed)(const Model *m, const Linear *pieces, int id, int position, float *x) {
    const int K = m->d_model;
    const int8_t *w = pieces->weight + (size_t)(id / 64) * 64 * K + 4 * (id % 64);
    float scale = pieces->scale[id] * m->scale;
    for (int k = 0; k < K; k += 4, w += 256)
        for (int i = 0; i < 4; i++) x[k + i] = w[i] * scale;
    if (m->positions) {
        if (position >= m->longest) position = m->longest - 1;
        const float *p = m->positions + (size_t)position * K;
        for (int k = 0; k < K; k++) x[k] += p[k];
    }
}

static inline void NAME(softmax)(float *x, int count) {
    float most = x[0], sum = 0;
    for (int i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < count; i++) {
        x[i] = NAME(exponential)(x[i] - most);
        sum += x[i];
    }
    float by = 1 / sum;
    for (int i = 0; i < count; i++) x[i] *= by;
}

/* --- encoder --- */

/* attention of every position of one sentence to all of them; x has rows q | k | v of `width` */
static void NAME(encoder_attention)(const Model *m, Scratch *s, const float *x, int length, int width,
                              float *y) {
    const int E = m->d_k, H = m->heads, padded = (length + 15) & ~15;
    float *keys = scratch_buffer(s, 5, sizeof(float) * E * padded);
    float *scores = scratch_buffer(s, 6, sizeof(float) * padded);
    float by = 1 / sqrtf((float)E);
    for (int h = 0; h < H; h++) {
        const float *k = x + H * E + h * E, *v = x + 2 * H * E + h * E;
        for (int j = 0; j < length; j++)
            for (int e = 0; e < E; e++) keys[(size_t)e * padded + j] = k[(size_t)j * width + e];
        for (int e = 0; e < E; e++)
            for (int j = length; j < padded; j++) keys[(size_t)e * padded + j] = 0;
        for (int i = 0; i < length; i++) {
            const float *q = x + (size_t)i * width + h * E;
            for (int j = 0; j < padded; j++) scores[j] = 0;
            for (int e = 0; e < E; e++) {
                float own = q[e] * by;
                const float *row = keys + (size_t)e * padded;
                for (int j = 0; j < padded; j++) scores[j] += own * row[j];
            }
            NAME(softmax)(scores, length);
            float *out = y + (size_t)i * H * E + h * E;
            for (int e = 0; e < E; e++) out[e] = 0;
            for (int j = 0; j < length; j++) {
                float weight = scores[j];
                const float *row = v + (size_t)j * width;
                for (int e = 0; e < E; e++) out[e] += weight * row[e];
            }
        }
    }
}

static void NAME(encode)(const Model *m, Scratch *s, int sentences, const int *lengths,
                         const int *ids, uint16_t **source_caches) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int rows = 0, most = 0;
    for (int i = 0; i < sentences; i++) rows += lengths[i];
    for (int l = 0; l < m->encoder_layers; l++)
        if (m->encoder[l].query_key_value.outputs > most) most = m->encoder[l].query_key_value.outputs;
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].source_key_value.outputs > most) most = m->decoder[l].source_key_value.outputs;
    float *x = scratch_buffer(s, 7, sizeof(float) * rows * M);
    float *qkv = scratch_buffer(s, 8, sizeof(float) * rows * most);
    float *attended = scratch_buffer(s, 9, sizeof(float) * rows * HE);
    for (int i = 0, r = 0; i < sentences; i++)
        for (int j = 0; j < lengths[i]; j++, r++)
            NAME(embed)(m, &m->source_pieces, ids[r], j, x + (size_t)r * M);
    for (int l = 0; l < m->encoder_layers; l++) {
        const EncoderLayer *layer = &m->encoder[l];
        const int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(pre_norm)(m, s, &layer->around_attention, x, rows), M,
                     rows, qkv);
        for (int i = 0, r = 0; i < sentences; r += lengths[i++])
            NAME(encoder_attention)(m, s, qkv + (size_t)r * width, lengths[i], width, attended + (size_t)r * HE);
        float *y = scratch_buffer(s, 4, sizeof(float) * rows * layer->output.outputs);
        NAME(linear)(s, &layer->output, attended, HE, rows, y);
        NAME(residual)(m, &layer->around_attention, x, y, rows, layer->output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, rows);
    }
    if (m->pre) NAME(normalize)(m, &m->encoder_norm, x, rows, x);
    for (int l = 0; l < m->decoder_layers; l++) {
        const Linear *kv = &m->decoder[l].source_key_value;
        NAME(linear)(s, kv, x, M, rows, qkv);
        for (int i = 0, r = 0; i < sentences; i++)
            for (int j = 0; j < lengths[i]; j++, r++) {
                uint16_t *out = source_caches[i] + ((size_t)l * lengths[i] + j) * 2 * HE;
                const float *in = qkv + (size_t)r * kv->outputs;
                for (int e = 0; e < 2 * HE; e++) out[e] = NAME(to_bf16)(in[e]);
            }
    }
}

/* --- decoder --- */

/* the keys, or the values, of a position that is soon used: of many hypotheses none stays near */
static inline void NAME(prefetch)(const uint16_t *x, int count) {
    for (int i = 0; i < count; i += 32) __builtin_prefetch(x + i);
}

static inline const uint16_t *NAME(cache_entry)(const uint16_t *entries, const int *table, int t,
                                                int width) {
    return entries + (size_t)(table ? table[t] : t) * width;
}

/* attention of one query of all heads to `count` cache entries, each keys | values; the table says
   where they are, or is NULL */
static void NAME(attend)(const Model *m, float *scores, const float *q, const uint16_t *entries,
                         const int *table, int count, float *y) {
    const int E = m->d_k, H = m->heads, HE = H * E;
    float by = 1 / sqrtf((float)E);
    for (int t = 0; t < count; t++) {
        const uint16_t *k = NAME(cache_entry)(entries, table, t, 2 * HE);
        if (t + DISTANCE < count)
            NAME(prefetch)(NAME(cache_entry)(entries, table, t + DISTANCE, 2 * HE), HE);
        for (int h = 0; h < H; h++) {
            float sum = 0;
            for (int e = 0; e < E; e++) sum += q[h * E + e] * NAME(from_bf16)(k[h * E + e]);
            scores[(size_t)h * count + t] = sum * by;
        }
    }
    for (int h = 0; h < H; h++) NAME(softmax)(scores + (size_t)h * count, count);
    for (int i = 0; i < HE; i++) y[i] = 0;
    for (int t = 0; t < count; t++) {
        const uint16_t *v = NAME(cache_entry)(entries, table, t, 2 * HE) + HE;
        if (t + DISTANCE < count)
            NAME(prefetch)(NAME(cache_entry)(entries, table, t + DISTANCE, 2 * HE) + HE, HE);
        for (int h = 0; h < H; h++) {
            float weight = scores[(size_t)h * count + t];
            for (int e = 0; e < E; e++) y[h * E + e] += weight * NAME(from_bf16)(v[h * E + e]);
        }
    }
}

typedef struct { float most, sum; } NAME(Softmax);

/* the greatest of each 64, and of all */
static float NAME(block_maxima)(const float *x, int count, float *best) {
    float most = -1e30f;
    for (int b = 0; b < count / 64; b++) {
        float top = x[64 * b];
        for (int i = 1; i < 64; i++) top = x[64 * b + i] > top ? x[64 * b + i] : top;
        best[b] = top;
        most = top > most ? top : most;
    }
    return most;
}

/* add some outputs of row r, at most CHUNK_OUTPUTS, to the softmax's sum, and take the best among
   its candidates; output_ids has their ids, or is NULL, and they are the ids from `from` on */
static void NAME(take_candidates)(const Model *m, const StepInput *step, int r, float *own, const int *output_ids,
                           int from, int count, NAME(Softmax) *running, StepOutput *found) {
    const int C = step->candidates;
    float best[CHUNK_OUTPUTS / 64], most = NAME(block_maxima)(own, count, best);
    NAME(Softmax) *here = &running[r];
    if (most > here->most) {
        here->sum *= NAME(exponential)(here->most - most);
        here->most = most;
    }
    float sum = 0, level = here->most;
    for (int i = 0; i < count; i++) sum += NAME(exponential)(own[i] - level);
    here->sum += sum;
    if (step->next && !output_ids && step->next[r] >= from && step->next[r] < from + count)
        found->next_log_probs[r] = own[step->next[r] - from];
    const uint8_t *allowed = step->allowed ? step->allowed + (size_t)r * step->kind_count : NULL;
    if (allowed && memchr(allowed, 0, step->kind_count)) {
        /* what may not follow has its part in the sum all the same */
        for (int i = 0; i < count; i++)
            own[i] = allowed[step->token_kinds[output_ids ? output_ids[i] : from + i]] ? own[i] : -1e30f;
        NAME(block_maxima)(own, count, best);
    }
    float *scores = found->log_probs + (size_t)r * C;
    int *ids = found->ids + (size_t)r * C;
    for (int b = 0; b < count / 64; b++) {
        if (best[b] <= scores[C - 1]) continue;
        for (int i = 64 * b; i < 64 * b + 64; i++) {
            int id = output_ids ? output_ids[i] : from + i;
            if (own[i] <= scores[C - 1] || (id < m->first && id != m->eos)) continue;
            int at = C - 1;
            for (; at > 0 && own[i] > scores[at - 1]; at--) {
                scores[at] = scores[at - 1];
                ids[at] = ids[at - 1];
            }
            scores[at] = own[i];
            ids[at] = id;
        }
    }
}

/* take candidates from all outputs of l, of R rows: those from r on, or `which` */
static void NAME(project)(const Model *m, Scratch *s, const StepInput *step, const Linear *l,
                               const int *output_ids, const uint8_t *q, const float *scales, int R, int r,
                               const int *which, NAME(Softmax) *running, StepOutput *found) {
    const int chunk = R <= 8 ? LARGE_CHUNK : CHUNK_OUTPUTS;
    float *logits = scratch_buffer(s, 10, sizeof(float) * R * chunk);
    for (int from = 0; from < l->outputs; from += chunk) {
        int to = from + chunk < l->outputs ? from + chunk : l->outputs;
        NAME(shared_product)(s, l, q, scales, R, from, to, logits, chunk);
        for (int i = 0; i < R; i++)
            for (int at = from; at < to; at += CHUNK_OUTPUTS) /* sums must not depend on R */
                NAME(take_candidates)(m, step, which ? which[i] : r + i, logits + (size_t)i * chunk + (at - from),
                               output_ids ? output_ids + at : NULL, at, to - at < CHUNK_OUTPUTS ? to - at : CHUNK_OUTPUTS, running,
                               found);
    }
}

static void NAME(start_row)(const Model *m, const StepInput *step, int r, NAME(Softmax) *running, StepOutput *found) {
    const int C = step->candidates;
    running[r].most = -1e30f;
    running[r].sum = 0;
    for (int c = r * C; c < (r + 1) * C; c++) {
        found->log_probs[c] = -1e30f;
        found->ids[c] = m->eos;
    }
}

/* compute all outputs of the model for the rows whose best piece is not probable enough */
static void NAME(project_unsure)(const Model *m, Scratch *s, const StepInput *step, uint8_t *q, float *scales,
                             NAME(Softmax) *running, StepOutput *found) {
    const int K = m->projection.inputs;
    int *which = scratch_buffer(s, 12, sizeof(int) * step->predicted), count = 0;
    for (int r = 0; r < step->predicted; r++) {
        float best = found->log_probs[r * step->candidates] - running[r].most;
        if (NAME(exponential)(best) >= step->min_confidence * running[r].sum) continue;
        NAME(start_row)(m, step, r, running, found);
        memmove(q + (size_t)count * K, q + (size_t)r * K, K);
        scales[count] = scales[r];
        which[count++] = r;
    }
    if (count)
        NAME(project)(m, s, step, &m->projection, NULL, q, scales, count, 0, which, running, found);
}

/* the best candidates of each row, and their log-probabilities */
static void NAME(predict)(const Model *m, Scratch *s, const StepInput *step, const float *x, StepOutput *found) {
    const Linear *l = step->projection;
    const int R = step->predicted, C = step->candidates, K = l->inputs;
    uint8_t *q = scratch_buffer(s, 0, (size_t)R * K);
    float *scales = scratch_buffer(s, 1, sizeof(float) * R);
    NAME(Softmax) *running = scratch_buffer(s, 11, sizeof(NAME(Softmax)) * R);
    NAME(quantize)(x, K, R, K, q, scales);
    for (int r = 0; r < R; r++) NAME(start_row)(m, step, r, running, found);
    NAME(project)(m, s, step, l, step->projection_ids, q, scales, R, 0, NULL, running, found);
    for (int r = 0, next = 0; step->sentence_projections && r < R; r = next) {
        int sentence = step->hypotheses[r] / step->beams;
        for (next = r + 1; next < R && step->hypotheses[next] / step->beams == sentence;) next++;
        NAME(project)(m, s, step, &step->sentence_projections[sentence],
                      step->sentence_projection_ids[sentence], q + (size_t)r * K, scales + r, next - r, r,
                      NULL, running, found);
    }
    if (step->sentence_projections && step->min_confidence > 0)
        NAME(project_unsure)(m, s, step, q, scales, running, found);
    for (int r = 0; r < R; r++) {
        float total = running[r].most + logf(running[r].sum);
        for (int c = 0; c < C; c++) found->log_probs[r * C + c] -= total;
        if (step->next) found->next_log_probs[r] -= total;
    }
}

static void NAME(step)(const Model *m, Scratch *s, const StepInput *step, StepOutput *found) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int R = step->count, longest = 1, widest = 0;
    for (int r = 0; r < R; r++) {
        if (step->positions[r] + 1 > longest) longest = step->positions[r] + 1;
        int length = step->source_lengths[step->hypotheses[r] / step->beams];
        if (length > longest) longest = length;
    }
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].query_key_value.outputs > widest) widest = m->decoder[l].query_key_value.outputs;
    float *x = scratch_buffer(s, 7, sizeof(float) * R * M);
    float *qkv = scratch_buffer(s, 8, sizeof(float) * R * widest);
    float *attended = scratch_buffer(s, 9, sizeof(float) * R * HE);
    float *scores = scratch_buffer(s, 6, sizeof(float) * m->heads * longest);
    for (int r = 0; r < R; r++)
        NAME(embed)(m, &m->target_pieces, step->ids[r], step->positions[r], x + (size_t)r * M);
    for (int l = 0; l < m->decoder_layers; l++) {
        const DecoderLayer *layer = &m->decoder[l];
        uint16_t *cache = step->cache + (size_t)l * step->cache_positions * 2 * HE;
        int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(pre_norm)(m, s, &layer->around_attention, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) { /* all before any attends: two pieces may be one hypothesis's */
            const int *table = step->cache_tables + (size_t)step->hypotheses[r] * step->table_width;
            uint16_t *own = cache + (size_t)table[step->positions[r]] * 2 * HE;
            const float *in = qkv + (size_t)r * width + HE;
            for (int e = 0; e < 2 * HE; e++) own[e] = NAME(to_bf16)(in[e]);
        }
        if (l == m->decoder_layers - 1) R = step->predicted; /* of the others nothing more is needed */
        for (int r = 0; r < R; r++) {
            const int *table = step->cache_tables + (size_t)step->hypotheses[r] * step->table_width;
            NAME(attend)(m, scores, qkv + (size_t)r * width, cache, table, step->positions[r] + 1,
                       attended + (size_t)r * HE);
        }
        float *y = scratch_buffer(s, 4, sizeof(float) * R * layer->output.outputs);
        NAME(linear)(s, &layer->output, attended, HE, R, y);
        NAME(residual)(m, &layer->around_attention, x, y, R, layer->output.outputs);

        width = layer->source_query.outputs;
        NAME(linear)(s, &layer->source_query, NAME(pre_norm)(m, s, &layer->around_source, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) {
            int sentence = step->hypotheses[r] / step->beams, length = step->source_lengths[sentence];
            const uint16_t *memory = step->source_caches[sentence] + (size_t)l * length * 2 * HE;
            NAME(attend)(m, scores, qkv + (size_t)r * width, memory, NULL, length, attended + (size_t)r * HE);
            if (found->attention && l == m->decoder_layers - 1) {
                float *row = found->attention + (size_t)r * step->attention_width;
                for (int t = 0; t < length; t++) {
                    float sum = 0;
                    for (int h = 0; h < m->heads; h++) sum += scores[(size_t)h * length + t];
                    row[t] = sum / m->heads;
                }
            }
        }
        y = scratch_buffer(s, 4, sizeof(float) * R * layer->source_output.outputs);
        NAME(linear)(s, &layer->source_output, attended, HE, R, y);
        NAME(residual)(m, &layer->around_source, x, y, R, layer->source_output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, R);
    }
    if (m->pre) NAME(normalize)(m, &m->decoder_norm, x, R, x);
    NAME(predict)(m, s, step, x, found);
}

#undef CHUNK_OUTPUTS
#undef LARGE_CHUNK
#undef DISTANCE
#undef UNROLL
#undef TILE_ROWS
#undef INPUT_OFFSET
